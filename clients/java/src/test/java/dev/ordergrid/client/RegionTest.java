package dev.ordergrid.client;

import java.time.Duration;
import java.util.List;

/** What an answer says about a change of a region, on a node that answers as a test says. */
final class RegionTest {
    private RegionTest() {}

    private interface Answer {
        void to(FakeNode.Link c, long clientSeq, int nth) throws java.io.IOException;
    }

    private interface Check {
        void with(Region r, FakeNode.Seen seqs, FakeNode.Seen received) throws Exception;
    }

    /** Runs check with a region of a node that answers the nth RegionApply, from 1, so. */
    private static void run(Answer answer, Check check) throws Exception {
        FakeNode.Seen seqs = new FakeNode.Seen();
        FakeNode.Seen received = new FakeNode.Seen();
        try (FakeNode n = new FakeNode((c, type, f) -> {
            if (type != Wire.REGION_APPLY) {
                return false;
            }
            seqs.add(f.getLong(24));
            received.add(f.getLong(32));
            answer.to(c, f.getLong(24), seqs.list().size());
            return true;
        }); GridClient c = GridClient.connect(Config.of(n.address()).connectTimeout(Duration.ofSeconds(60)).requestTimeout(Duration.ofSeconds(60)))) {
            check.with(c.region("r"), seqs, received);
        }
    }

    private static final byte[] KEY = {'k'};
    private static final byte[] VALUE = {'v'};
    private static final byte[] NOTHING = {};

    /** The answer of a take is lost; the copy that is sent again has the same number and gets the stored value. */
    static void testLostAnswerOfATake() throws Exception {
        run((c, seq, n) -> {
            if (n == 1) {
                c.close();
            } else {
                c.applied(seq, 201, Wire.ACK_DUP | Wire.REGION_HAS_VALUE, VALUE);
            }
        }, (r, seqs, received) -> {
            Region.Taken t = r.take(KEY).orElseThrow();
            Tests.equal(new String(t.value()) + t.receipt().duplicate(), "vtrue", "taken");
            Tests.equal(seqs.list(), List.of(1L, 1L), "numbers");
            Tests.equal(received.list(), List.of(0L, 0L), "received");
        });
    }

    static void testReceivedRisesWithAnswers() throws Exception {
        run((c, seq, n) -> c.applied(seq, 200 + seq, 0, NOTHING), (r, seqs, received) -> {
            for (int i = 0; i < 3; i++) {
                r.put(KEY, VALUE);
            }
            Tests.equal(received.list(), List.of(0L, 1L, 2L), "received");
        });
    }

    static void testOverloadedIsSentAgain() throws Exception {
        run((c, seq, n) -> {
            if (n < 3) {
                c.reject(seq, RejectCode.OVERLOADED, 0);
            } else {
                c.applied(seq, 201, 0, NOTHING);
            }
        }, (r, seqs, received) -> {
            r.put(KEY, VALUE);
            Tests.equal(seqs.list(), List.of(1L, 2L, 3L), "numbers");
        });
    }

    /** Refused after a copy was sent: by a primary that has looked at the session it is final, otherwise nothing is known. */
    static void testRefusedAfterResend() throws Exception {
        for (RejectCode code : List.of(RejectCode.CONDITION_FAILED, RejectCode.REGION_UNKNOWN, RejectCode.CAPACITY, RejectCode.NOT_PERMITTED, RejectCode.UNSUPPORTED)) {
            run((c, seq, n) -> {
                if (n == 1) {
                    c.close();
                } else {
                    c.reject(seq, code, 42);
                }
            }, (r, seqs, received) -> {
                GridException e = GridCheck.thrown(GridException.class, () -> r.putIf(KEY, VALUE, 7));
                boolean decides = code != RejectCode.NOT_PERMITTED && code != RejectCode.UNSUPPORTED;
                Tests.equal(e.fate(), decides ? Fate.REFUSED : Fate.UNKNOWN, code + ": " + e.getMessage());
                if (code == RejectCode.CONDITION_FAILED) {
                    Tests.equal(((ConditionFailedException) e).version(), 42L, "version");
                }
                Tests.equal(decides || e.getMessage().contains("read the key"), true, e.getMessage());
            });
        }
    }

    /** A value where none is due is a violation: the connection ends, and the change is sent again. */
    static void testValueOfAPut() throws Exception {
        run((c, seq, n) -> c.applied(seq, 201, n == 1 ? Wire.REGION_HAS_VALUE : Wire.ACK_DUP, n == 1 ? VALUE : NOTHING), (r, seqs, received) -> {
            Tests.equal(r.put(KEY, VALUE).duplicate(), true, "the second answer");
            Tests.equal(seqs.list(), List.of(1L, 1L), "numbers");
        });
    }
}
