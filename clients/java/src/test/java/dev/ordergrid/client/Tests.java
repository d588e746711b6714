package dev.ordergrid.client;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Objects;

/**
 * Runs every {@code static void test…()} of the test classes, without a framework: {@code java -Dvectors=DIR Tests
 * [name]}. Exit status 1 if one failed.
 */
final class Tests {
    private static final Class<?>[] CLASSES = {VectorsTest.class, HostileTest.class, ExactlyOnceTest.class, AwaitedTest.class, PemTest.class, HandshakeTest.class,
        RegionTest.class};

    private Tests() {}

    public static void main(String[] args) throws IllegalAccessException {
        int run = 0;
        int failed = 0;
        for (Class<?> c : CLASSES) {
            Method[] methods = c.getDeclaredMethods();
            Arrays.sort(methods, Comparator.comparing(Method::getName));
            for (Method m : methods) {
                String name = c.getSimpleName() + "." + m.getName();
                if (!m.getName().startsWith("test") || args.length > 0 && !name.contains(args[0])) {
                    continue;
                }
                run++;
                long began = System.nanoTime();
                try {
                    m.invoke(null);
                    System.out.printf("ok    %s (%d ms)%n", name, (System.nanoTime() - began) / 1_000_000);
                } catch (InvocationTargetException e) {
                    failed++;
                    System.out.printf("FAIL  %s%n", name);
                    e.getCause().printStackTrace(System.out);
                }
            }
        }
        System.out.printf("%d tests, %d failed%n", run, failed);
        System.exit(failed > 0 || run == 0 ? 1 : 0);
    }

    static void check(boolean ok, String what) {
        if (!ok) {
            throw new AssertionError(what);
        }
    }

    static void equal(Object got, Object want, String what) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError(what + ": " + got + ", want " + want);
        }
    }

    static void contains(String got, String want, String what) {
        if (got == null || !got.contains(want)) {
            throw new AssertionError(what + ": " + got + ", want " + want + " in it");
        }
    }
}
