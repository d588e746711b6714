"""Subscribes by a token in the header, prints each message, and ends behind as many as given."""

import json
import sys

from websockets.sync.client import connect

url, wanted, token, topics = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
with connect(url, subprotocols=["ordergrid.json.v1"], additional_headers={"Authorization": "Bearer " + token}) as ws:
    ws.ping().wait(30)
    ws.send(json.dumps({"op": "subscribe", "id": 1, "topics": topics, "last": 2}))
    for _ in range(wanted):
        m = json.loads(ws.recv(60))
        print(m["op"], m.get("partition", ""), m.get("at", ""), m.get("data", {}).get("clOrdID", ""), flush=True)
