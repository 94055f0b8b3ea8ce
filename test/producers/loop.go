// With LOOP=COUNT: COUNT orders that are rolled back, then COUNT that are committed, with the functions of etc/producers/go.go.
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
)

var undone = errors.New("undone")

func addAndFail(tx *sql.Tx, order int64) error {
	if _, err := tx.Exec("INSERT INTO shop_order (id, state) VALUES (?, 'new')", order); err != nil {
		return err
	}
	id, err := dqAdd(tx, "order.cancel-unpaid", fmt.Sprintf("order-%d", order), []byte("undone"), 0)
	if err != nil || id == 0 {
		return fmt.Errorf("id %d: %v", id, err)
	}
	return undone
}

func addBytes(tx *sql.Tx, order int64) error {
	bytes := make([]byte, 256)
	for at := range bytes {
		bytes[at] = byte(at)
	}
	_, err := dqAdd(tx, "bytes", nil, bytes, 0)
	return err
}

func init() {
	count, err := strconv.ParseInt(os.Getenv("LOOP"), 10, 64)
	if err != nil {
		return
	}
	db, err := connect()
	if err != nil {
		log.Fatal(err)
	}
	for order := int64(1); order <= count; order++ {
		if err := transaction(db, order, addAndFail); err != undone {
			log.Fatal(err)
		}
	}
	if err := transaction(db, 0, addBytes); err != nil {
		log.Fatal(err)
	}
	for order := int64(1); order <= count; order++ {
		if err := transaction(db, order, placeOrder); err != nil {
			log.Fatal(err)
		}
	}
	os.Exit(0)
}
