// Protodata writes what the tests of the codec are compared with: for every built-in kind some random objects, as
// protobuf and as JSON, and for every scalar with a canonical form some texts and what Go makes of them.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// samples is how many objects of each kind are written.
const samples = 2

var stable = regexp.MustCompile(`^v[0-9]+$`)

// transport are kinds that are options of requests rather than bodies, lists, which are never sent, and kinds that no
// API server serves.
var transport = regexp.MustCompile(`^(WatchEvent|.*List|APIVersions|APIGroup|(List|Get|Create|Update|Patch)Options|.*(Proxy|Log|Exec|Attach|PortForward)Options|Status|ConversionReview|PodStatusResult|RangeAllocation|SerializedReference)$`)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: protodata <directory>")
	}
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme} {
		if err := add(types); err != nil {
			log.Fatal(err)
		}
	}
	write(filepath.Join(os.Args[1], "proto.tsv"), func(out *bufio.Writer) {
		for _, gvk := range kinds(types) {
			for sample := range samples {
				if err := object(out, types, gvk, int64(sample)); err != nil {
					log.Fatalf("%v: %v", gvk, err)
				}
			}
		}
	})
	write(filepath.Join(os.Args[1], "scalars.tsv"), scalars)
	write(filepath.Join(os.Args[1], "bodies.tsv"), func(out *bufio.Writer) { bodies(out, types) })
	write(filepath.Join(os.Args[1], "yaml.tsv"), documents)
}

func write(path string, body func(*bufio.Writer)) {
	file, err := os.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	out := bufio.NewWriter(file)
	body(out)
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
	if err := file.Close(); err != nil {
		log.Fatal(err)
	}
}

func kinds(types *runtime.Scheme) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for gvk := range types.AllKnownTypes() {
		// Options of requests are registered in every group; one is enough.
		if gvk.Kind == "DeleteOptions" && gvk.Group != "" {
			continue
		}
		if stable.MatchString(gvk.Version) && !transport.MatchString(gvk.Kind) {
			out = append(out, gvk)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].String() < out[j].String() })
	return out
}

// object writes group/version/kind, the protobuf body, and the JSON of what a server reads from that body.
func object(out *bufio.Writer, types *runtime.Scheme, gvk schema.GroupVersionKind, sample int64) error {
	filled, err := types.New(gvk)
	if err != nil {
		return err
	}
	seed := sample
	for _, c := range gvk.String() {
		seed = seed*31 + int64(c)
	}
	f := filler{Rand: rand.New(rand.NewSource(seed))}
	f.fill(reflect.ValueOf(filled).Elem(), 0)
	filled.GetObjectKind().SetGroupVersionKind(gvk)

	serializer := protobuf.NewSerializer(types, types)
	var body bytes.Buffer
	if err := serializer.Encode(filled, &body); err != nil {
		return err
	}
	read, _, err := serializer.Decode(body.Bytes(), nil, nil)
	if err != nil {
		return err
	}
	read.GetObjectKind().SetGroupVersionKind(gvk)
	text, err := json.Marshal(read)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s/%s/%s\t%s\t%s\n", gvk.Group, gvk.Version, gvk.Kind, base64.StdEncoding.EncodeToString(body.Bytes()), text)
	return err
}
