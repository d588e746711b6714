using System;
using System.Collections.Generic;
using System.IO;
using System.Net.Sockets;
using System.Text;

/// A session of FIX 4.4 with nothing but the class library of .NET: it logs on, sends orders, each when the one before has
/// its report, loses its connection, and logs on again where its numbers were. Arguments: host, port, SenderCompID,
/// TargetCompID, user, orders. The environment has the password, COUNTERPARTY_PASSWORD. It prints "report CLORDID EXECTYPE
/// MSGSEQNUM" for each report, and fails with what it did not expect.
class Counterparty
{
    readonly string sender, target;
    int incoming = 1, outgoing = 1;
    TcpClient connection;
    Stream stream;

    Counterparty(string sender, string target)
    {
        this.sender = sender;
        this.target = target;
    }

    static void Main(string[] args)
    {
        var c = new Counterparty(args[2], args[3]);
        int orders = int.Parse(args[5]);
        for (int i = 0; i < orders; i++)
        {
            if (i % (orders / 2) == 0)
            {
                c.LogOn(args[0], int.Parse(args[1]), args[4], Environment.GetEnvironmentVariable("COUNTERPARTY_PASSWORD"));
            }
            string id = args[2] + "-" + i;
            c.Send("D", "11=" + id + "|55=ACME|54=1|60=" + Now() + "|38=100|40=2|44=10.5|");
            var report = c.Expect("8");
            if (report["11"] != id)
            {
                throw new Exception("a report of " + report["11"] + ", expected: of " + id);
            }
            Console.WriteLine("report " + id + " " + report["150"] + " " + report["34"]);
        }
        c.Send("5", "");
        c.Expect("5");
    }

    static string Now() { return DateTime.UtcNow.ToString("yyyyMMdd-HH:mm:ss.fff"); }

    void LogOn(string host, int port, string user, string password)
    {
        if (connection != null)
        {
            connection.Close();
        }
        connection = new TcpClient(host, port) { NoDelay = true };
        stream = new BufferedStream(connection.GetStream());
        Send("A", "98=0|108=30|553=" + user + "|554=" + password + "|");
        Expect("A");
    }

    void Send(string type, string fields)
    {
        string body = ("35=" + type + "|34=" + outgoing + "|49=" + sender + "|52=" + Now() + "|56=" + target + "|" + fields).Replace('|', '\x01');
        string message = "8=FIX.4.4\x01" + "9=" + body.Length + "\x01" + body;
        int sum = 0;
        foreach (char b in message)
        {
            sum += b;
        }
        byte[] bytes = Encoding.ASCII.GetBytes(message + "10=" + (sum % 256).ToString("000") + "\x01");
        stream.Write(bytes, 0, bytes.Length);
        stream.Flush();
        outgoing++;
    }

    /// Expect reads messages until one of the type comes, whose number has to be the next one; heartbeats may come before.
    Dictionary<string, string> Expect(string type)
    {
        for (;;)
        {
            var m = Read();
            if (m["34"] != incoming.ToString())
            {
                throw new Exception("MsgSeqNum is " + m["34"] + ", expected: " + incoming);
            }
            incoming++;
            if (m["35"] == type)
            {
                return m;
            }
            if (m["35"] != "0")
            {
                throw new Exception("a message of type " + m["35"] + ", expected: " + type);
            }
        }
    }

    Dictionary<string, string> Read()
    {
        var m = new Dictionary<string, string>();
        var field = new StringBuilder();
        while (!m.ContainsKey("10"))
        {
            int b = stream.ReadByte();
            if (b < 0)
            {
                throw new Exception("the gateway ended the connection");
            }
            if (b != 1)
            {
                field.Append((char)b);
                continue;
            }
            string[] parts = field.ToString().Split(new[] { '=' }, 2);
            m[parts[0]] = parts[1];
            field.Clear();
        }
        return m;
    }
}
