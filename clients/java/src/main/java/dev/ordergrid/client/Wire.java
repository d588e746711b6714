package dev.ordergrid.client;

/** Constants of docs/protocol.md, version 4: frame types, codes and limits. */
final class Wire {
    static final int VERSION = 4;
    static final int MAGIC = 0x3152474F; // the bytes OGR1
    static final int ROLE_CLIENT = 1;

    static final int HEADER = 8;
    /** Flag of Table: orders belong to the partition of their symbol. */
    static final int FLAG_BY_SYMBOL = 1;
    static final int MAX_FRAME = 1 << 20;
    static final int MAX_PAYLOAD = 65472;
    static final int MAX_STRING = 255;
    static final int MAX_TEXT = 1024;
    static final int MAX_TOKEN = 16 << 10;
    static final int MAX_KEY = 255;
    static final int MAX_FILTER = 64;
    static final int MAX_PARTITIONS = 1024;
    static final int MAX_TABLE_MEMBERS = 8;
    static final int NO_PRIMARY = 255;
    static final int ENTRY_HEADER = 64;

    static final int HELLO = 0x01;
    static final int WELCOME = 0x02;
    static final int GOAWAY = 0x03;
    static final int AUTHENTICATE = 0x04;
    static final int TABLE_REQUEST = 0x05;
    static final int TABLE = 0x06;
    static final int AUTHENTICATED = 0x07;
    static final int OPEN_SESSION = 0x10;
    static final int SESSION_OPENED = 0x11;
    static final int SUBMIT = 0x20;
    static final int ACK = 0x21;
    static final int REJECT = 0x22;
    static final int NOT_PRIMARY = 0x23;
    static final int GET = 0x30;
    static final int GET_REPLY = 0x31;
    static final int REGION_APPLY = 0x50;
    static final int REGION_APPLIED = 0x51;
    static final int REGION_GET = 0x52;
    static final int REGION_GOT = 0x53;
    static final int REGION_SCAN = 0x54;
    static final int REGION_PAGE = 0x55;
    static final int REGION_LIST = 0x56;
    static final int REGION_LISTED = 0x57;
    static final int READ_LOG = 0x60;
    static final int LOG_CHUNK = 0x61;
    static final int PING = 0x62;
    static final int PONG = 0x63;
    static final int FOLLOW = 0x68;
    static final int FOLLOW_ENTRIES = 0x69;
    static final int FOLLOW_CREDIT = 0x6a;
    static final int FOLLOW_END = 0x6b;

    static final int SUBMIT_FIXED = HEADER + 24;
    static final int ACK_SIZE = HEADER + 48;
    static final int ACK_DUP = 1;

    /** Flag of RegionApplied: it has what a take removed. */
    static final int REGION_HAS_VALUE = 2;
    static final int MAX_REGION_NAME = 48;
    static final int MAX_REGION_PAIR = 65440; // bytes of a key and its value

    static final int BY_ID = 1;
    static final int BY_CLORDID = 2;
    static final int FOUND = 0;
    static final int NOT_FOUND = 1;
    static final int FREED = 2;

    static final int END_SNAPSHOT_REQUIRED = 1;
    static final int END_DIVERGED = 2;
    static final int END_REPLACED = 5;
    static final int END_NOT_PERMITTED = 7;

    private Wire() {}

    /** The name docs/protocol.md uses for a frame type. */
    static String name(int type) {
        return switch (type) {
            case HELLO -> "Hello";
            case WELCOME -> "Welcome";
            case GOAWAY -> "Goaway";
            case AUTHENTICATE -> "Authenticate";
            case TABLE_REQUEST -> "TableRequest";
            case TABLE -> "Table";
            case AUTHENTICATED -> "Authenticated";
            case OPEN_SESSION -> "OpenSession";
            case SESSION_OPENED -> "SessionOpened";
            case SUBMIT -> "Submit";
            case ACK -> "Ack";
            case REJECT -> "Reject";
            case NOT_PRIMARY -> "NotPrimary";
            case GET -> "Get";
            case GET_REPLY -> "GetReply";
            case REGION_APPLY -> "RegionApply";
            case REGION_APPLIED -> "RegionApplied";
            case REGION_GET -> "RegionGet";
            case REGION_GOT -> "RegionGot";
            case REGION_SCAN -> "RegionScan";
            case REGION_PAGE -> "RegionPage";
            case REGION_LIST -> "RegionList";
            case REGION_LISTED -> "RegionListed";
            case READ_LOG -> "ReadLog";
            case LOG_CHUNK -> "LogChunk";
            case PING -> "Ping";
            case PONG -> "Pong";
            case FOLLOW -> "Follow";
            case FOLLOW_ENTRIES -> "FollowEntries";
            case FOLLOW_CREDIT -> "FollowCredit";
            case FOLLOW_END -> "FollowEnd";
            default -> String.format("0x%02x", type);
        };
    }
}
