package dev.ordergrid.client;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Collection;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManagerFactory;

/**
 * How connections are encrypted: TLS 1.3. Files are read anew for each connection, so certificates can be replaced
 * under a running client.
 */
public final class Tls {
    private final Path cert;
    private final Path key;
    private final Path ca;
    private final SSLContext context;
    private final String name;

    private Tls(Path cert, Path key, Path ca, SSLContext context, String name) {
        this.cert = cert;
        this.key = key;
        this.ca = ca;
        this.context = context;
        this.name = name;
    }

    /**
     * Mutual TLS: trusts the authorities in {@code ca} and presents the certificate in {@code cert}, all PEM.
     *
     * @param cert the client's certificate, and those between it and the authority
     * @param key  its private key: PKCS #8, PKCS #1 (RSA) or SEC 1 (EC), not encrypted
     * @param ca   one certificate or more
     */
    public static Tls files(Path cert, Path key, Path ca) {
        return new Tls(cert, key, ca, null, null);
    }

    /** Trusts the authorities of a PEM file and presents no certificate: for clients that have a token. */
    public static Tls authority(Path ca) {
        return new Tls(null, null, ca, null, null);
    }

    /** Uses a context of the caller's: key stores, HSMs, own trust managers. Host names are checked all the same. */
    public static Tls context(SSLContext context) {
        return new Tls(null, null, null, context, null);
    }

    /** The same with the name that the nodes' certificates must have, in place of the host that is dialled. */
    public Tls serverName(String serverName) {
        return new Tls(cert, key, ca, context, serverName);
    }

    SSLEngine engine(String host, int port) throws IOException, GeneralSecurityException {
        SSLContext c = context == null ? load() : context;
        SSLEngine e = c.createSSLEngine(name == null ? host : name, port);
        e.setUseClientMode(true);
        SSLParameters p = e.getSSLParameters();
        p.setProtocols(new String[] {"TLSv1.3"});
        p.setEndpointIdentificationAlgorithm("HTTPS");
        e.setSSLParameters(p);
        return e;
    }

    private SSLContext load() throws IOException, GeneralSecurityException {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        int n = 0;
        for (Certificate c : certificates(ca)) {
            trusted.setCertificateEntry("ca" + n++, c);
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        KeyManager[] own = null;
        if (cert != null) {
            X509Certificate[] chain = certificates(cert).toArray(new X509Certificate[0]);
            own = new KeyManager[] {new OwnKey(Pem.privateKey(key, chain[0].getPublicKey().getAlgorithm()), chain)};
        }
        SSLContext c = SSLContext.getInstance("TLSv1.3");
        c.init(own, trust.getTrustManagers(), null);
        return c;
    }

    private static Collection<? extends Certificate> certificates(Path file) throws IOException, GeneralSecurityException {
        Collection<? extends Certificate> list = CertificateFactory.getInstance("X.509")
                .generateCertificates(new ByteArrayInputStream(Files.readAllBytes(file)));
        if (list.isEmpty()) {
            throw new GeneralSecurityException(file + ": no certificate in it, allowed: one PEM certificate or more");
        }
        return list;
    }
}
