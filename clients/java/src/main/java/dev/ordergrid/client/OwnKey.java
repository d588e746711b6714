package dev.ordergrid.client;

import java.net.Socket;
import java.security.Principal;
import java.security.PrivateKey;
import java.security.cert.X509Certificate;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.X509ExtendedKeyManager;

/**
 * Presents one certificate, always: if it does not match the node's list of authorities, the node can say so. A key store
 * would encrypt the key for each connection.
 */
final class OwnKey extends X509ExtendedKeyManager {
    private static final String ALIAS = "client";
    private final PrivateKey key;
    private final X509Certificate[] chain;

    OwnKey(PrivateKey key, X509Certificate[] chain) {
        this.key = key;
        this.chain = chain;
    }

    @Override
    public String chooseClientAlias(String[] types, Principal[] issuers, Socket socket) {
        return ALIAS;
    }

    @Override
    public String chooseEngineClientAlias(String[] types, Principal[] issuers, SSLEngine engine) {
        for (String type : types) {
            if (type.equals(key.getAlgorithm()) || type.startsWith(key.getAlgorithm() + "_")) {
                return ALIAS;
            }
        }
        return null;
    }

    @Override
    public String[] getClientAliases(String type, Principal[] issuers) {
        return new String[] {ALIAS};
    }

    @Override
    public X509Certificate[] getCertificateChain(String alias) {
        return chain.clone();
    }

    @Override
    public PrivateKey getPrivateKey(String alias) {
        return key;
    }

    @Override
    public String[] getServerAliases(String type, Principal[] issuers) {
        return null;
    }

    @Override
    public String chooseServerAlias(String type, Principal[] issuers, Socket socket) {
        return null;
    }
}
