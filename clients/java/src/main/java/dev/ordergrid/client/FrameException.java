package dev.ordergrid.client;

/** A frame or log entry that cannot be decoded: which field, its value, and what is allowed. */
final class FrameException extends Exception {
    private static final long serialVersionUID = 1;

    FrameException(int type, String field, long value, String allowed) {
        super(Wire.name(type) + "." + field + " is " + Long.toUnsignedString(value) + ", allowed: " + allowed);
    }

    FrameException(String field, long value, String allowed) {
        super("frame " + field + " is " + Long.toUnsignedString(value) + ", allowed: " + allowed);
    }

    FrameException(String what) {
        super(what);
    }
}
