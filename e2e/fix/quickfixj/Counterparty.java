import quickfix.*;

/**
 * An initiator of QuickFIX/J that sends orders and prints what it sees, a line each: "on", "off", "report CLORDID
 * EXECTYPE", "other MSGTYPE TEXT". Arguments: BeginString, SenderCompID, TargetCompID, host, port, orders. It ends when
 * its input does.
 */
public class Counterparty implements Application {
    private final java.util.concurrent.CountDownLatch first = new java.util.concurrent.CountDownLatch(1);

    public static void main(String[] args) throws Exception {
        SessionID id = new SessionID(args[0], args[1], args[2]);
        SessionSettings settings = new SessionSettings();
        settings.setString(SessionFactory.SETTING_CONNECTION_TYPE, "initiator");
        settings.setString(id, "BeginString", args[0]);
        settings.setString(id, "SenderCompID", args[1]);
        settings.setString(id, "TargetCompID", args[2]);
        settings.setString(id, "SocketConnectHost", args[3]);
        settings.setString(id, "SocketConnectPort", args[4]);
        settings.setString(id, "HeartBtInt", "5");
        settings.setString(id, "ReconnectInterval", "1");
        settings.setString(id, "StartTime", "00:00:00");
        settings.setString(id, "EndTime", "00:00:00");
        settings.setString(id, "UseDataDictionary", "N");
        settings.setString(id, "DefaultApplVerID", "9");
        Counterparty app = new Counterparty();
        Initiator initiator = new SocketInitiator(app, new MemoryStoreFactory(), settings, new DefaultMessageFactory());
        initiator.start();
        app.first.await();
        int orders = Integer.parseInt(args[5]);
        for (int i = 0; i < orders; i++) {
            Message m = new Message();
            m.getHeader().setString(35, "D");
            m.setString(11, "j" + i);
            m.setString(21, "1");
            m.setString(55, "ACME");
            m.setString(54, "1");
            m.setUtcTimeStamp(60, java.time.LocalDateTime.now(java.time.ZoneOffset.UTC), true);
            m.setString(38, "100");
            m.setString(40, "2");
            m.setString(44, "10.5");
            Session.sendToTarget(m, id);
            Thread.sleep(5);
        }
        System.in.read();
        initiator.stop();
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
            print("report " + get(m, 11) + " " + get(m, 150));
        } else {
            print("other " + type + " " + get(m, 58));
        }
    }
}
