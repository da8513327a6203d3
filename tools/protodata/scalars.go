package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scalars writes lines of type, text, and the canonical text or `!` and the message.
func scalars(out *bufio.Writer) {
	r := rand.New(rand.NewSource(1))
	pick := func(from ...string) string { return from[r.Intn(len(from))] }
	digits := func(max int) string {
		text := ""
		for range r.Intn(max + 1) {
			text += pick("0", "0", "0", "1", "2", "5", "9")
		}
		return text
	}
	for range 700 {
		text := pick("", "", "", "-", "+") + digits(20)
		if r.Intn(3) == 0 {
			text += "." + digits(12)
		}
		text += pick("", "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2", "e12", "e-12", "K", "x", "e")
		line(out, "quantity", text, &resource.Quantity{})
	}
	for range 150 {
		text := pick("", "-", "+")
		for range r.Intn(4) {
			text += digits(4) + pick("", ".", "."+digits(10)) + pick("h", "m", "s", "ms", "us", "µs", "ns", "", "d")
		}
		line(out, "duration", text, &metav1.Duration{})
	}
	two := func() string { return pick("00", "01", "09", "12", "23", "29", "31", "59", "60", "7") }
	for range 300 {
		text := pick("2026", "0001", "1969", "9999", "26") + "-" + pick("01", "02", "06", "12", "13", "00") + "-" + pick("01", "28", "29", "30", "31", "00") + pick("T", "T", "T", "t", " ") +
			two() + ":" + two() + ":" + two() + pick("", "", ".5", ".123456", ".999999999", ",7", ".") + pick("Z", "Z", "+01:00", "-11:30", "z", "", "+1:00", "+25:00")
		line(out, "time", text, &metav1.Time{})
		line(out, "microtime", text, &metav1.MicroTime{})
	}
}

func line(out *bufio.Writer, name, text string, value json.Unmarshaler) {
	input, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	if err := value.UnmarshalJSON(input); err != nil {
		fmt.Fprintf(out, "%s\t%s\t!%s\n", name, text, err)
		return
	}
	result, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var plain *string
	if err := json.Unmarshal(result, &plain); err != nil {
		panic(err)
	}
	if plain == nil {
		plain = new("null")
	}
	fmt.Fprintf(out, "%s\t%s\t%s\n", name, text, *plain)
}
