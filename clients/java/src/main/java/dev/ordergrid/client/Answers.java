package dev.ordergrid.client;

import java.nio.ByteBuffer;

/** What a primary sends to a session. An exception ends the connection; what is unanswered is then sent again. */
final class Answers {
    private final Link s;

    Answers(Link s) {
        this.s = s;
    }

    void onFrame(Conn c, int n) throws FrameException {
        ByteBuffer b = c.in;
        int at = c.r;
        int type = In.type(b, at);
        switch (type) {
            case Wire.ACK -> {
                In.open(b, at, n, Wire.ACK, Wire.ACK_SIZE, true);
                onAck(c, b, at);
            }
            case Wire.REGION_APPLIED -> {
                if (!s.regions) {
                    throw unexpected(c, type);
                }
                onRegionApplied(c, b, at, n);
            }
            case Wire.REJECT -> onReject(c, In.reject(b, at, n));
            case Wire.NOT_PRIMARY -> {
                In.NotPrimary m = In.notPrimary(b, at, n);
                s.stats.redirects++;
                throw new NotPrimaryException(s.partition, c.addr, m.epoch(), m.address());
            }
            case Wire.GOAWAY -> {
                In.Goaway m = In.goaway(b, at, n);
                throw new GoawayException(c.addr, m.code(), m.text());
            }
            case Wire.PONG, Wire.TABLE -> { } // harmless
            default -> throw unexpected(c, type);
        }
    }

    private GridException unexpected(Conn c, int type) {
        return s.violation(c, "frame type " + Wire.name(type) + " on a session, allowed: " + (s.regions ? "RegionApplied, " : "")
                + "Ack, Reject, NotPrimary, Goaway", null);
    }

    /**
     * Checks order before anything else: acks come in the order of the client's numbers, none left out, and the log's
     * numbers rise with them. Only for what was sent more than once may the node answer as it finds its stored replies.
     */
    private void onAck(Conn c, ByteBuffer b, int at) {
        long clientSeq = b.getLong(at + 8);
        long seq = b.getLong(at + 16);
        long epoch = b.getLong(at + 24);
        Window win = s.win;
        Window.Cell cell = win.at(clientSeq);
        if (b.getInt(at + 32) != s.slot) {
            throw s.violation(c, "ack is for session slot " + (b.getInt(at + 32) & 0xFFFFFFFFL) + ", allowed: " + (s.slot & 0xFFFFFFFFL), null);
        }
        if (!win.awaits(clientSeq)) {
            if (s.empties.answered(clientSeq)) {
                return; // the stored reply
            }
            throw s.violation(c, "ack is for order " + Long.toUnsignedString(clientSeq) + ", allowed: one without an answer (" + unanswered() + ")", null);
        }
        if (clientSeq != win.head && !cell.resent && !s.regions) { // a condition that fails may be answered late
            throw s.violation(c, "ack is for order " + clientSeq + ", allowed: " + win.head + ", the oldest without an answer: a gap", null);
        }
        if (seq <= s.lastSeq && !cell.resent || seq <= 0) {
            throw s.violation(c, "ack of order " + clientSeq + " has seq " + Long.toUnsignedString(seq) + ", allowed: more than " + s.lastSeq, null);
        }
        s.lastAck = Math.max(s.lastAck, clientSeq);
        s.lastSeq = Math.max(s.lastSeq, seq);
        if (epoch > s.epoch) {
            s.epoch = epoch;
            s.client.directory.sawEpoch(s.partition, epoch);
        }
        s.good();
        Window.Pending o = cell.ord;
        cell.ord = null;
        s.settle(clientSeq);
        if (o == null) {
            s.stats.lateAccepted++;
            return;
        }
        s.stats.accepted++;
        boolean dup = (b.get(at + 37) & Wire.ACK_DUP) != 0;
        if (dup) {
            s.stats.duplicates++;
        }
        s.finish(o, new Receipt(s.partition, seq, epoch, b.getLong(at + 40), b.getInt(at + 48) & 0xFFFFFFFFL, b.get(at + 36) & 0xFF, dup), null);
    }

    /** onAck of a change: the fields of an Ack, and what a take removed. */
    private void onRegionApplied(Conn c, ByteBuffer b, int at, int n) throws FrameException {
        byte[] value = RegionFrames.applied(b, at, n);
        long clientSeq = b.getLong(at + 8);
        Window.Pending o = s.win.awaits(clientSeq) ? s.win.at(clientSeq).ord : null;
        if (o != null && o.change != null) {
            int flags = b.get(at + 37) & 0xFF;
            if ((flags & Wire.REGION_HAS_VALUE) != 0 != (o.change.op == RegionChange.TAKE)) {
                throw s.violation(c, "answer to operation " + o.change.op + " of a region has flags " + flags + ", allowed: 2 of a take, and of nothing else", null);
            }
            o.change.taken = value;
        }
        onAck(c, b, at);
    }

    private String unanswered() {
        return s.win.head + ".." + (s.win.next - 1);
    }

    private void onReject(Conn c, In.Reject m) {
        long seq = m.requestId();
        if (m.forType() != Wire.SUBMIT && m.forType() != 0 && !(s.regions && m.forType() == Wire.REGION_APPLY)) {
            throw s.violation(c, "reject is for a " + Wire.name(m.forType()) + ", allowed: Submit", null);
        }
        if (!s.win.awaits(seq)) {
            if (s.empties.answered(seq)) {
                return;
            }
            throw s.violation(c, "reject is for order " + Long.toUnsignedString(seq) + ", allowed: one without an answer (" + unanswered() + ")", null);
        }
        RejectedException reject = new RejectedException(s.partition, m, c.addr);
        Window.Cell cell = s.win.at(seq);
        switch (reject.code()) {
            case SESSION_MOVED -> {
                // Of an earlier copy it decides nothing: the session is checked first.
                cell.sent = cell.resent;
                throw reject;
            }
            case DRAINING -> {
                cell.refused();
                throw reject; // the same number again, at the next primary
            }
            case SEQUENCE_GAP -> {
                // Number and order go out again, from the oldest unanswered one on.
                cell.refused();
                s.expected = m.detail();
                throw s.violation(c, "the node expected order " + m.detail() + " of the session and got " + seq, reject);
            }
            case SESSION_UNKNOWN -> {
                onSessionUnknown(seq, cell);
                return;
            }
            default -> { }
        }
        s.good();
        Window.Pending o = cell.ord;
        cell.ord = null;
        boolean resent = cell.resent;
        s.settle(seq);
        if (o != null && s.awaited.keeps(o, reject)) {
            return;
        }
        boolean decided = reject.code().decides() || !resent && reject.code() != RejectCode.SESSION_WINDOW;
        if (o == null) {
            s.stats.lateRefused += decided ? 1 : 0;
        } else if (decided) {
            s.stats.refused++;
            s.finish(o, null, reject);
        } else {
            s.stats.unknown++;
            s.finish(o, null, new UnknownOutcomeException(s.partition, seq, Clock.now() - o.submitted, reject, s.regions));
        }
    }

    /**
     * The grid forgot the session. An order it saw for the first time was not applied and can go out under a new
     * number; one that was sent before might have been.
     */
    private void onSessionUnknown(long seq, Window.Cell cell) {
        if (cell.resent && cell.ord != null) {
            s.giveUp(seq, new SessionEvictedException());
        }
        cell.sent = false;
        cell.resent = false;
        s.evicting = true;
        for (long q = s.win.head; q < s.win.next; q++) {
            Window.Cell other = s.win.at(q);
            if (other.sent && !other.settled) {
                return; // wait for the other answers of this connection
            }
        }
        throw new SessionEvictedException();
    }
}
