import java.util.LinkedHashMap;
import java.util.Map;
import quickfix.*;

/**
 * An initiator of QuickFIX/J that sends orders and prints what it sees, a line each: "on", "off", "sent CLORDID", "report
 * CLORDID EXECTYPE MSGSEQNUM", "other MSGTYPE TEXT". Arguments are NAME=VALUE: begin, sender, target, addresses (host:port,
 * one after the other with commas), orders (how many; 0: until its input has a line), pace (milliseconds between two of
 * them), and maybe user, truststore (PKCS12, of TLS) and store (its password), transport and dictionary (XML files of FIXT
 * 1.1 and FIX 5.0 SP2 that messages are checked by). The environment has the password of the session,
 * COUNTERPARTY_PASSWORD. It ends when its input does.
 */
public class Counterparty implements Application {
    private final java.util.concurrent.CountDownLatch first = new java.util.concurrent.CountDownLatch(1);
    private final String user;

    private Counterparty(String user) {
        this.user = user;
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> o = new LinkedHashMap<>();
        for (String arg : args) {
            o.put(arg.substring(0, arg.indexOf('=')), arg.substring(arg.indexOf('=') + 1));
        }
        SessionID id = new SessionID(o.get("begin"), o.get("sender"), o.get("target"));
        Counterparty app = new Counterparty(o.get("user"));
        Initiator initiator = new SocketInitiator(app, new MemoryStoreFactory(), settings(id, o), new DefaultMessageFactory());
        initiator.start();
        app.first.await();
        int orders = Integer.parseInt(o.get("orders"));
        for (int i = 0; orders == 0 ? System.in.available() == 0 : i < orders; i++) {
            String name = o.get("sender") + "-" + i;
            print("sent " + name);
            Message order = order(name);
            if (id.isFIXT() && i % 2 == 0) { // the others are of the session's version
                order.getHeader().setString(1128, "9");
            }
            Session.sendToTarget(order, id);
            Thread.sleep(Integer.parseInt(o.get("pace")));
        }
        while (System.in.read() >= 0) {
        }
        initiator.stop();
    }

    private static SessionSettings settings(SessionID id, Map<String, String> o) {
        SessionSettings s = new SessionSettings();
        s.setString(SessionFactory.SETTING_CONNECTION_TYPE, "initiator");
        s.setString(id, "BeginString", o.get("begin"));
        s.setString(id, "SenderCompID", o.get("sender"));
        s.setString(id, "TargetCompID", o.get("target"));
        String number = "";
        for (String address : o.get("addresses").split(",")) {
            s.setString(id, "SocketConnectHost" + number, address.substring(0, address.lastIndexOf(':')));
            s.setString(id, "SocketConnectPort" + number, address.substring(address.lastIndexOf(':') + 1));
            number = number.isEmpty() ? "1" : String.valueOf(Integer.parseInt(number) + 1);
        }
        if (o.get("truststore") != null) {
            s.setString(id, "SocketUseSSL", "Y");
            s.setString(id, "SocketTrustStore", o.get("truststore"));
            s.setString(id, "SocketTrustStorePassword", o.get("store"));
            s.setString(id, "TrustStoreType", "PKCS12");
        }
        s.setString(id, "HeartBtInt", "5");
        s.setString(id, "ReconnectInterval", "1");
        s.setString(id, "StartTime", "00:00:00");
        s.setString(id, "EndTime", "00:00:00");
        s.setString(id, "UseDataDictionary", o.get("dictionary") != null ? "Y" : "N");
        if (o.get("dictionary") != null) {
            s.setString(id, "TransportDataDictionary", o.get("transport"));
            s.setString(id, "AppDataDictionary", o.get("dictionary"));
        }
        s.setString(id, "DefaultApplVerID", "9");
        return s;
    }

    private static Message order(String name) {
        Message m = new Message();
        m.getHeader().setString(35, "D");
        m.setString(11, name);
        m.setString(21, "1");
        m.setString(55, "ACME");
        m.setString(54, "1");
        m.setUtcTimeStamp(60, java.time.LocalDateTime.now(java.time.ZoneOffset.UTC), true);
        m.setString(38, "100");
        m.setString(40, "2");
        m.setString(44, "10.5");
        return m;
    }

    private static synchronized void print(String line) {
        System.out.println(line);
    }

    private static String get(FieldMap m, int tag) {
        try {
            return m.isSetField(tag) ? m.getString(tag) : "";
        } catch (FieldNotFound e) {
            return "";
        }
    }

    public void onCreate(SessionID id) {
    }

    public void onLogon(SessionID id) {
        print("on");
        first.countDown();
    }

    public void onLogout(SessionID id) {
        print("off");
    }

    public void toAdmin(Message m, SessionID id) {
        if (user != null && get(m.getHeader(), 35).equals("A")) {
            m.setString(553, user);
            m.setString(554, System.getenv("COUNTERPARTY_PASSWORD"));
        }
    }

    public void toApp(Message m, SessionID id) {
    }

    public void fromAdmin(Message m, SessionID id) {
        String type = get(m.getHeader(), 35);
        if (type.equals("3") || !get(m, 58).isEmpty()) {
            print("other " + type + " " + get(m, 58));
        }
    }

    public void fromApp(Message m, SessionID id) {
        String type = get(m.getHeader(), 35);
        if (type.equals("8")) {
            print("report " + get(m, 11) + " " + get(m, 150) + " " + get(m.getHeader(), 34));
        } else {
            print("other " + type + " " + get(m, 58));
        }
    }
}
