package dev.ordergrid.client;

import java.util.TreeSet;

/**
 * The numbers that were sent without payload on the present connection, have no caller, and are unanswered: refused
 * ones between orders without an answer, and those of a gap.
 */
final class Empties {
    private final TreeSet<Long> of = new TreeSet<>();

    void sent(long seq) {
        of.add(seq);
    }

    /** Reports whether the node owed an answer to an empty frame of this number. It owes one to each. */
    boolean answered(long seq) {
        return of.remove(seq);
    }

    void clear() {
        of.clear();
    }
}
