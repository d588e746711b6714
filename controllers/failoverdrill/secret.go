package failoverdrill

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

const (
	// tokenKey is where a Secret has the token, or the operator's key.
	tokenKey = "token"
	// keyBytes of the operator's key.
	keyBytes = 32
	// KeySecret names the Secret in the operator's namespace with the key from which tokens and certificates of all
	// recorders are derived.
	KeySecret = "ordergrid-drill-key"
)

// Keys returns the key from which the tokens of recorders and their authority are derived. The operator derives them
// when needed, so that it has to read no Secret but its own.
type Keys interface {
	Key(ctx context.Context) ([]byte, error)
}

// StoredKey is a key in a Secret of the operator's own namespace. It is created when there is none.
type StoredKey struct {
	// Client writes to the API server, Live reads from it.
	Client client.Client
	Live   client.Reader
	// Namespace of the operator.
	Namespace string
}

// Key reads the key, or creates it.
func (k StoredKey) Key(ctx context.Context) ([]byte, error) {
	name := types.NamespacedName{Namespace: k.Namespace, Name: KeySecret}
	for range 2 { // another operator may create it at the same time
		s := &corev1.Secret{}
		err := k.Live.Get(ctx, name, s)
		if err == nil {
			if len(s.Data[tokenKey]) < keyBytes {
				return nil, fmt.Errorf("the Secret %s has no key %q of %d bytes; delete the Secret, and the operator creates it anew", name, tokenKey, keyBytes)
			}
			return s.Data[tokenKey], nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read Secret %s: %w", name, err)
		}
		made := make([]byte, keyBytes)
		_, _ = rand.Read(made) // never fails
		s = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: KeySecret, Labels: objects.Labels(objects.Drill, KeySecret)},
			Data:       map[string][]byte{tokenKey: made},
		}
		if err := k.Client.Create(ctx, s); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("create Secret %s: %w", name, err)
		}
	}
	return nil, fmt.Errorf("the Secret %s is repeatedly created and deleted", name)
}

// token of a drill's recorder.
func token(key []byte, d *api.FailoverDrill) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("recorder/" + d.UID))
	return hex.EncodeToString(mac.Sum(nil))
}

// secret passes token and certificate to the recorder, and to users who may read it.
func secret(d *api.FailoverDrill, key []byte) (*corev1.Secret, error) {
	gvk := api.GroupVersion.WithKind("FailoverDrill")
	m := drillMeta(d, recorderName(d))
	m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, gvk)}
	data, err := identity(d, key)
	if err != nil {
		return nil, err
	}
	data[tokenKey] = []byte(token(key, d))
	return &corev1.Secret{ObjectMeta: m, Data: data}, nil
}
