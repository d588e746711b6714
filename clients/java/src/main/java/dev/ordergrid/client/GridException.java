package dev.ordergrid.client;

/**
 * The base of what this package throws. Messages name the field or node, the value, what is allowed, and what to do.
 * Arguments that are wrong by themselves are {@link IllegalArgumentException}s.
 */
public class GridException extends RuntimeException {
    private static final long serialVersionUID = 1;

    GridException(String message, Throwable cause) {
        super(message, cause);
    }

    GridException(String message, Throwable cause, boolean stack) {
        super(message, cause, true, stack);
    }

    /** What this means for the order, if a submit method threw it. */
    public Fate fate() {
        return Fate.UNKNOWN;
    }

    /** The message of an error, or its name if it has none. */
    static String text(Throwable t) {
        String m = t.getMessage();
        return t instanceof GridException && m != null ? m : t.getClass().getSimpleName() + (m == null ? "" : ": " + m);
    }

    /** Finds an error of a type among the causes of t; null: there is none. */
    static <T extends Throwable> T find(Throwable t, Class<T> type) {
        for (int i = 0; t != null && i < 16; i++, t = t.getCause()) {
            if (type.isInstance(t)) {
                return type.cast(t);
            }
        }
        return null;
    }

    /** Reports whether retries cannot help: the caller has to change something. */
    static boolean permanent(Throwable t) {
        GoawayException goaway = find(t, GoawayException.class);
        RejectedException reject = find(t, RejectedException.class);
        return goaway != null && goaway.permanent() || reject != null && reject.code() == RejectCode.NOT_PERMITTED;
    }
}
