package dev.ordergrid.client;

import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.util.Arrays;
import java.util.Base64;

/** Private keys in the forms that tools write. That of SEC 1 is what grid-node dev --tls makes, see GridCheck. */
final class PemTest {
    private PemTest() {}

    private static Path pem(String kind, byte[] der) throws Exception {
        Path f = Files.createTempFile("key", ".pem");
        Files.writeString(f, "-----BEGIN " + kind + "-----\n" + Base64.getMimeEncoder().encodeToString(der) + "\n-----END " + kind + "-----\n");
        f.toFile().deleteOnExit();
        return f;
    }

    static void testForms() throws Exception {
        KeyPairGenerator g = KeyPairGenerator.getInstance("RSA");
        g.initialize(1024);
        PrivateKey key = g.generateKeyPair().getPrivate();
        byte[] der = key.getEncoded();
        Tests.equal(Pem.privateKey(pem("PRIVATE KEY", der), "RSA"), key, "PKCS #8");
        int header = 26; // SEQUENCE, version, algorithm, OCTET STRING
        Tests.equal(Pem.privateKey(pem("RSA PRIVATE KEY", Arrays.copyOfRange(der, header, der.length)), "RSA"), key, "PKCS #1");
    }

    static void testRefused() throws Exception {
        for (String kind : new String[] {"ENCRYPTED PRIVATE KEY", "CERTIFICATE", "RSA PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY"}) {
            Path f = pem(kind, new byte[] {1, 2, 3});
            try {
                throw new AssertionError(kind + " is read as " + Pem.privateKey(f, "RSA"));
            } catch (GeneralSecurityException e) {
                Tests.check(kind.equals("RSA PRIVATE KEY") || kind.equals("PRIVATE KEY") || e.getMessage().contains(f.toString()), kind + ": " + e);
            }
        }
    }
}
