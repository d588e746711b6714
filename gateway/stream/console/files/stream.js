// @ts-check
// The stream of a gateway: a WebSocket that comes back and goes on where it was.

/**
 * Those of clients have neither partition nor at.
 * @typedef {{partition: number, at: string, topic: string, data: any}} Message
 * @typedef {{partition: number, after: string, through: string, count?: number}} Range
 * @typedef {Message & {op: "message", id: number}
 *   | {op: "gap", id: number, ranges?: Range[]}
 *   | {op: "subscribed", id: number, position: string}
 *   | {op: "unsubscribed"|"live", id: number}
 *   | {op: "welcome", id?: number, client: string, topics: string[]}
 *   | {op: "status", id?: number, status: import("./grid.js").Status}
 *   | {op: "error", id?: number, code: string, error: string}} Answer what the gateway sends to this page
 * @typedef {{
 *   onState: (state: "open"|"lost"|"closed", text: string) => void,
 *   onWelcome: (client: string, topics: string[]) => void,
 *   onRefused: (text: string) => void,
 *   onMessage: (m: Message) => void,
 *   onGap: (ranges: Range[]) => void,
 *   onAnew: () => void,
 *   onStatus: (status: import("./grid.js").Status) => void,
 * }} Handler
 * @typedef {{onStart: () => void, onMessage: (m: Message) => void, onError: (text: string) => void}} Watcher
 */

const first = 10000 // messages to begin with
const firstPause = 250
const lastPause = 5000
const statusEvery = 1000
const firstWatch = 1000 // numbers of subscriptions of watch

/** The parts of patterns that are of a stream. @param {string[]} patterns @param {string} name */
export function ofStream(patterns, name) {
  return [...new Set(patterns.map(pattern => {
    const [stream, ...rest] = pattern.split(".")
    if (stream === ">") return `${name}.>`
    return stream === name || stream === "*" ? [name, ...rest].join(".") : ""
  }).filter(Boolean))]
}

export class Stream {
  /** @param {Handler} handler */
  constructor(handler) {
    this.handler = handler
    this.token = ""
    /** @type {WebSocket|null} */
    this.ws = null
    this.lineage = ""
    /** @type {Map<number, Map<number, string>>} positions by subscription and partition */
    this.at = new Map()
    /** @type {string[]} */
    this.topics = []
    this.pause = firstPause
    this.wanted = false
    this.status = false
    this.timer = 0
    /** @type {Map<number, {command: object, watcher: Watcher}>} */
    this.watched = new Map()
    this.nextWatch = firstWatch
    this.known = false // logged in
  }

  /** Subscribes to something that needs no position: after a loss of the connection it begins anew. @param {object} command @param {Watcher} watcher */
  watch(command, watcher) {
    const id = this.nextWatch++
    this.watched.set(id, {command, watcher})
    if (this.known) this.send({op: "subscribe", id, ...command})
    return id
  }

  /** @param {number} id */
  unwatch(id) {
    if (this.watched.delete(id)) this.send({op: "unsubscribe", id})
  }

  /** @param {string} token */
  open(token) {
    this.token = token
    this.wanted = true
    this.connect()
  }

  connect() {
    const ws = new WebSocket(location.origin.replace(/^http/, "ws") + "/stream", "ordergrid.json.v1")
    this.ws = ws
    ws.onopen = () => {
      if (this.token) this.send({op: "login", token: this.token})
      else this.subscribe(["orders.>", "grid.status"]) // the certificate has logged in
    }
    ws.onmessage = e => this.take(JSON.parse(e.data))
    ws.onclose = e => this.closed(e)
  }

  /** @param {CloseEvent} e */
  closed(e) {
    clearInterval(this.timer)
    this.known = false
    if (!this.wanted) {
      this.handler.onState("closed", "not connected")
      return
    }
    this.handler.onState("lost", `connection lost (${e.code}${e.reason ? " " + e.reason : ""}), connecting again`)
    setTimeout(() => this.connect(), this.pause * (0.5 + Math.random()))
    this.pause = Math.min(2 * this.pause, lastPause)
  }

  /** @param {object} command */
  send(command) {
    if (this.ws?.readyState === WebSocket.OPEN) this.ws.send(JSON.stringify(command))
  }

  /** @param {string[]} topics */
  subscribe(topics) {
    this.topics = ofStream(topics, "orders")
    this.status = topics.some(t => t === "grid.status" || t === ">" || t === "grid.>")
    this.topics.forEach((topic, i) => {
      /** @type {any} */
      const m = {op: "subscribe", id: i + 1, topics: topic, flush_ms: 100}
      if (this.at.has(i + 1)) m.resume = this.position(i + 1)
      else m.last = first
      this.send(m)
    })
    this.known = true
    for (const [id, w] of this.watched) this.send({op: "subscribe", id, ...w.command})
    const ask = () => this.send({op: "status"})
    if (this.status) {
      ask()
      this.timer = setInterval(ask, statusEvery)
    }
  }

  /** @param {number} id */
  position(id) {
    const list = [...(this.at.get(id) || [])].sort((a, b) => a[0] - b[0]).map(([p, at]) => `p${p}:${at}`)
    return this.lineage + (list.length ? "." + list.join(",") : "")
  }

  /** @param {Answer} m */
  take(m) {
    const h = this.handler
    if (m.id !== undefined && m.id >= firstWatch) {
      const w = this.watched.get(m.id)?.watcher
      if (m.op === "message") w?.onMessage(m)
      else if (m.op === "subscribed") w?.onStart()
      else if (m.op === "error") w?.onError(m.error)
      return
    }
    switch (m.op) {
      case "message":
        this.at.get(m.id)?.set(m.partition, m.at)
        h.onMessage(m)
        return
      case "gap":
        for (const r of m.ranges || []) this.at.get(m.id)?.set(r.partition, r.through)
        h.onGap(m.ranges || [])
        return
      case "welcome":
        h.onWelcome(m.client, m.topics)
        this.subscribe(m.topics)
        return
      case "subscribed":
        if (!this.at.has(m.id)) {
          const [lineage, list] = m.position.split(/\.(.*)/s)
          this.lineage = lineage
          this.at.set(m.id, new Map((list || "").split(",").filter(Boolean).map(part => {
            const [p, at] = part.slice(1).split(":")
            return [Number(p), at]
          })))
        }
        this.pause = firstPause
        h.onState("open", "live")
        return
      case "status":
        h.onStatus(m.status)
        return
      case "error":
        this.failed(m)
    }
  }

  /** @param {{code: string, error: string}} m */
  failed(m) {
    switch (m.code) {
      case "lineage": // another history: what is on the page is of the one before
        this.lineage = ""
        this.at.clear()
        this.handler.onAnew()
        this.ws?.close()
        return
      case "ahead":
        this.ws?.close()
        return
      default:
        this.wanted = false
        this.ws?.close()
        this.handler.onRefused(m.error)
    }
  }
}
