package dev.ordergrid.client;

import java.time.Duration;
import java.time.Instant;

/**
 * A time in which orders of a session waited because its connection or its primary was lost. An idle session that
 * reconnects has none.
 *
 * @param partition  of the session
 * @param from       the last answer before it, or the submission of the first order left waiting, if that was later
 * @param to         the first answer after it
 * @param cause      how the client detected it
 * @param error      the client's first error
 * @param oldEpoch   of the configuration before
 * @param newEpoch   and after; equal: the connection was lost, not the primary
 * @param oldPrimary member id of the primary before
 * @param newPrimary and after
 * @param attempts   to find the primary and to open the session there, the last one included
 */
public record Outage(int partition, Instant from, Instant to, Cause cause, Throwable error, long oldEpoch, long newEpoch,
        String oldPrimary, String newPrimary, int attempts) {
    /** How the client detected an outage. */
    public enum Cause {
        /** The connection was closed or reset, or the port was closed. */
        RESET,
        /** An answer was owed and nothing came. */
        SILENT,
        /** The node reported it: not the primary (any more), or draining. */
        MOVED,
        /** The node refused the connection or the session. */
        REFUSED,
        /** The node broke the protocol. */
        PROTOCOL;

        static Cause of(Throwable e) {
            if (GridException.find(e, ProtocolException.class) != null) {
                return PROTOCOL;
            }
            GoawayException goaway = GridException.find(e, GoawayException.class);
            RejectedException reject = GridException.find(e, RejectedException.class);
            if (GridException.find(e, NotPrimaryException.class) != null || goaway != null && goaway.code() == GoawayException.DRAINING
                    || reject != null && (reject.code() == RejectCode.DRAINING || reject.code() == RejectCode.SESSION_MOVED)) {
                return MOVED;
            }
            if (goaway != null || reject != null || GridException.find(e, SessionEvictedException.class) != null) {
                return REFUSED;
            }
            if (e instanceof SilentException || e instanceof TimedOutException || e instanceof java.net.SocketTimeoutException) {
                return SILENT;
            }
            return RESET;
        }
    }

    /** Length of the outage. */
    public Duration duration() {
        return Duration.between(from, to);
    }
}
