import quickfix.*;

/** An acceptor of QuickFIX/J that reports each order as new. Arguments: HOST PORT TARGET SENDER... */
public class Acceptor implements Application {
    public static void main(String[] args) throws Exception {
        SessionSettings s = new SessionSettings();
        s.setString(SessionFactory.SETTING_CONNECTION_TYPE, "acceptor");
        s.setString("SocketAcceptAddress", args[0]);
        s.setString("SocketAcceptPort", args[1]);
        s.setString("SocketTcpNoDelay", "Y");
        s.setString("StartTime", "00:00:00");
        s.setString("EndTime", "00:00:00");
        s.setString("UseDataDictionary", "N");
        for (int i = 3; i < args.length; i++) {
            SessionID id = new SessionID("FIX.4.2", args[2], args[i]);
            s.setString(id, "BeginString", "FIX.4.2");
            s.setString(id, "SenderCompID", args[2]);
            s.setString(id, "TargetCompID", args[i]);
        }
        SocketAcceptor acceptor = new SocketAcceptor(new Acceptor(), new MemoryStoreFactory(), s, id -> new Silent(), new DefaultMessageFactory());
        acceptor.start();
        System.out.println("listening");
        Thread.currentThread().join();
    }

    /** A log of nothing. */
    private static class Silent implements Log {
        public void clear() {
        }

        public void onIncoming(String message) {
        }

        public void onOutgoing(String message) {
        }

        public void onEvent(String text) {
        }

        public void onErrorEvent(String text) {
        }
    }

    public void onCreate(SessionID id) {
    }

    public void onLogon(SessionID id) {
    }

    public void onLogout(SessionID id) {
    }

    public void toAdmin(Message m, SessionID id) {
    }

    public void toApp(Message m, SessionID id) {
    }

    public void fromAdmin(Message m, SessionID id) {
    }

    public void fromApp(Message m, SessionID id) throws FieldNotFound {
        String order = m.getString(11);
        Message r = new Message();
        r.getHeader().setString(35, "8");
        r.setString(6, "0");
        r.setString(11, order);
        r.setString(14, "0");
        r.setString(17, order);
        r.setString(20, "0");
        r.setString(37, order);
        r.setString(38, m.getString(38));
        r.setString(39, "0");
        r.setString(54, m.getString(54));
        r.setString(55, m.getString(55));
        r.setUtcTimeStamp(60, java.time.LocalDateTime.now(java.time.ZoneOffset.UTC), true);
        r.setString(150, "0");
        r.setString(151, m.getString(38));
        try {
            Session.sendToTarget(r, id);
        } catch (SessionNotFound e) {
            throw new IllegalStateException(e);
        }
    }
}
