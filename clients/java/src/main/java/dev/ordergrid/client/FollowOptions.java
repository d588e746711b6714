package dev.ordergrid.client;

/**
 * What a {@link Follower} follows: {@code FollowOptions.of(3).after(position)}.
 *
 * @param partition to follow
 * @param after     the last entry that the follower holds: it gets those behind it
 * @param atEnd     begin behind what is committed, instead of behind after
 * @param replica   address of the one replica to follow; empty: any in sync, backups before the primary, and another
 *                  one after a failure
 * @param account   lets orders of this account (FIX tag 1) through, and nothing else; empty: all entries
 * @param window    bytes that the node may send ahead of next; a node with many followers grants less
 */
public record FollowOptions(int partition, Position after, boolean atEnd, String replica, String account, int window) {
    /** Checks the values. */
    public FollowOptions {
        if (window < 1 || window > 1 << 30) {
            throw new IllegalArgumentException("FollowOptions.window is " + window + ", allowed: 1.." + (1 << 30) + " bytes");
        }
        if (account.length() > Wire.MAX_FILTER) {
            throw new IllegalArgumentException("FollowOptions.account has " + account.length() + " bytes, allowed: at most " + Wire.MAX_FILTER);
        }
        if (atEnd && !after.equals(Position.START)) {
            throw new IllegalArgumentException("FollowOptions.after is entry " + after.seq() + ", allowed: none with atEnd");
        }
    }

    /** The whole log of a partition, from its beginning. */
    public static FollowOptions of(int partition) {
        return new FollowOptions(partition, Position.START, false, "", "", 1 << 20);
    }

    /** The entries behind a position. */
    public FollowOptions after(Position p) {
        return new FollowOptions(partition, p, false, replica, account, window);
    }

    /** The entries behind what is committed when it connects. */
    public FollowOptions fromEnd() {
        return new FollowOptions(partition, Position.START, true, replica, account, window);
    }

    /** Orders of one account only. */
    public FollowOptions account(String value) {
        return new FollowOptions(partition, after, atEnd, replica, value, window);
    }

    /** One replica only, by its address. */
    public FollowOptions replica(String address) {
        return new FollowOptions(partition, after, atEnd, address, account, window);
    }
}
