package dev.ordergrid.client;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;

/** Reads private keys. The JDK takes PKCS #8 only; the two older forms are wrapped in it. */
final class Pem {
    private static final byte[] VERSION = {2, 1, 0};
    // AlgorithmIdentifier of RSA (RFC 8017), and the OID of EC public keys (RFC 5480), in DER.
    private static final byte[] RSA = {0x30, 13, 6, 9, 0x2a, (byte) 0x86, 0x48, (byte) 0x86, (byte) 0xf7, 13, 1, 1, 1, 5, 0};
    private static final byte[] EC = {6, 7, 0x2a, (byte) 0x86, 0x48, (byte) 0xce, 0x3d, 2, 1};

    private Pem() {}

    static PrivateKey privateKey(Path file, String algorithm) throws IOException, GeneralSecurityException {
        String text = Files.readString(file, StandardCharsets.US_ASCII);
        for (String kind : new String[] {"PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"}) {
            String begin = "-----BEGIN " + kind + "-----";
            int from = text.indexOf(begin);
            int to = text.indexOf("-----END " + kind + "-----");
            if (from < 0 || to < from) {
                continue;
            }
            byte[] der;
            try {
                der = Base64.getMimeDecoder().decode(text.substring(from + begin.length(), to));
            } catch (IllegalArgumentException e) {
                throw new GeneralSecurityException(file + ": " + kind + " is not Base64");
            }
            if (kind.startsWith("RSA")) {
                der = der(0x30, VERSION, RSA, der(4, der));
            } else if (kind.startsWith("EC")) {
                der = der(0x30, VERSION, der(0x30, EC, curve(file, der)), der(4, der));
            }
            return KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(der));
        }
        throw new GeneralSecurityException(file + ": no private key in it, allowed: PEM of type PRIVATE KEY, RSA PRIVATE KEY or EC PRIVATE KEY, not encrypted");
    }

    /** The curve's OID inside an ECPrivateKey (RFC 5915): the content of its element [0]. */
    private static byte[] curve(Path file, byte[] der) throws GeneralSecurityException {
        for (int i = 0; i + 4 < der.length; i++) {
            int n = der[i + 1];
            if ((der[i] & 0xFF) == 0xA0 && der[i + 2] == 6 && n == der[i + 3] + 2 && i + 2 + n <= der.length) {
                byte[] oid = new byte[n];
                System.arraycopy(der, i + 2, oid, 0, n);
                return oid;
            }
        }
        throw new GeneralSecurityException(file + ": the EC key does not name its curve; write it as PKCS #8 (openssl pkcs8 -topk8 -nocrypt)");
    }

    private static byte[] der(int tag, byte[]... parts) {
        int n = 0;
        for (byte[] p : parts) {
            n += p.length;
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(tag);
        if (n >= 256) {
            out.write(0x82);
            out.write(n >> 8);
        } else if (n >= 128) {
            out.write(0x81);
        }
        out.write(n);
        for (byte[] p : parts) {
            out.writeBytes(p);
        }
        return out.toByteArray();
    }
}
