package main

import (
	"fmt"
	"math/rand"
	"reflect"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var texts = []string{"", "a", "bc", "<&>", "é\u2028", "x\"\\\n"}

// filler puts small random values into a structure: sometimes nothing, sometimes a zero, so that the rules of
// omission are exercised.
type filler struct {
	*rand.Rand
	// sparse leaves out half of all fields.
	sparse bool
}

func (f filler) text() string { return texts[f.Intn(len(texts))] }

func (f filler) quantity() resource.Quantity {
	return resource.MustParse([]string{"0", "1", "100m", "1Gi", "1.5Gi", "2e3", "12345678901234567890", "-5k", "0.1"}[f.Intn(9)])
}

func (f filler) fill(v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *metav1.TypeMeta:
		return
	case *metav1.Time:
		if f.Intn(4) > 0 {
			*p = metav1.Unix(f.Int63n(1<<32), 0)
		}
		return
	case *metav1.MicroTime:
		if f.Intn(4) > 0 {
			*p = metav1.NewMicroTime(time.Unix(f.Int63n(1<<32), f.Int63n(1_000_000)*1000))
		}
		return
	case *metav1.Duration:
		p.Duration = time.Duration(f.Int63n(1 << 45))
		return
	case *resource.Quantity:
		*p = f.quantity()
		return
	case *intstr.IntOrString:
		*p = intstr.FromInt32(f.Int31n(100) - 1)
		if f.Intn(2) == 0 {
			*p = intstr.FromString(f.text())
		}
		return
	case *runtime.RawExtension:
		p.Raw = fmt.Appendf(nil, `{"kind":"K","apiVersion":"v1","n":%d,"f":1.5,"l":[null,"é"]}`, f.Intn(5))
		return
	case *metav1.FieldsV1:
		p.Raw = []byte(`{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`)
		return
	case *apiextensions.JSON:
		p.Raw = []byte([]string{`1`, `"x"`, `{"b":[1,2],"a":null}`, `true`, `0.5`}[f.Intn(5)])
		return
	case *apiextensions.JSONSchemaPropsOrBool:
		p.Allows = f.Intn(2) == 0
		if depth < 12 && f.Intn(2) == 0 {
			p.Allows = true
			p.Schema = &apiextensions.JSONSchemaProps{Type: f.text()}
		}
		return
	case *apiextensions.JSONSchemaPropsOrArray:
		if f.Intn(2) == 0 {
			p.Schema = &apiextensions.JSONSchemaProps{Type: f.text()}
		} else {
			p.JSONSchemas = []apiextensions.JSONSchemaProps{{Type: f.text()}, {}}
		}
		return
	case *apiextensions.JSONSchemaPropsOrStringArray:
		if f.Intn(2) == 0 {
			p.Schema = &apiextensions.JSONSchemaProps{Type: f.text()}
		} else {
			p.Property = []string{"a", ""}
		}
		return
	case *apiextensions.JSONSchemaProps:
		// Schemas contain schemas: two levels are enough.
		if depth > 8 {
			p.Type = f.text()
			return
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !(f.sparse && f.Intn(2) == 0) {
				f.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		if f.Intn(3) > 0 && depth < 14 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth+1)
			// A pointer to the zero time is written as null, which is read as no pointer: not the same any more.
			if zero, ok := v.Interface().(interface{ IsZero() bool }); ok && zero.IsZero() {
				v.SetZero()
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(f.text()))
			return
		}
		n := f.length(v.Type().Elem(), depth)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range f.length(v.Type().Elem(), depth) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString(f.text() + f.text())
			f.fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(f.Intn(2) == 0)
	case reflect.Int32:
		v.SetInt([]int64{0, 1, -1, 1 << 20}[f.Intn(4)])
	case reflect.Int64:
		v.SetInt([]int64{0, 1, -1, 1 << 40}[f.Intn(4)])
	case reflect.Float64:
		v.SetFloat([]float64{0, 1, 0.5, 1e21, -1e-7}[f.Intn(5)])
	default:
		panic(fmt.Sprintf("cannot fill %v", v.Type()))
	}
}

// length is small for what is large.
func (f filler) length(element reflect.Type, depth int) int {
	switch {
	case depth > 14:
		return 0
	case element.Kind() == reflect.Struct && element.NumField() > 8:
		return f.Intn(2)
	default:
		return f.Intn(3)
	}
}
