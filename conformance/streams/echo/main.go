// A server for a pod: it says what it hears, and hangs up when the other side has.
package main

import (
	"io"
	"log"
	"net"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:7001")
	if err != nil {
		log.Fatal(err)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			defer connection.Close()
			io.Copy(connection, connection)
		}()
	}
}
