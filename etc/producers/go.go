// Adds tasks in the application's own transaction, with go-sql-driver (Debian: golang golang-github-go-sql-driver-mysql-dev).
// go run go.go ORDER   places an order;  go run go.go ORDER paid   pays it
package main

import (
	"database/sql"
	"fmt"
	"log"
	"os"
	"strconv"

	_ "github.com/go-sql-driver/mysql"
)

// dqAdd adds a task to the transaction and returns its id. key nil: without one; a live task with that key is kept.
func dqAdd(tx *sql.Tx, tag string, key any, body []byte, delayMs int64) (id uint64, err error) {
	if _, err = tx.Exec("CALL dq_add(?, ?, ?, ?, @dq_id)", tag, key, body, delayMs); err == nil {
		err = tx.QueryRow("SELECT @dq_id").Scan(&id)
	}
	return id, err
}

// dqCancelKey cancels the pending or running task with that key. 1, or 0 if there is none.
func dqCancelKey(tx *sql.Tx, tag, key string) (n int, err error) {
	if _, err = tx.Exec("CALL dq_cancel_key(?, ?, @dq_n)", tag, key); err == nil {
		err = tx.QueryRow("SELECT @dq_n").Scan(&n)
	}
	return n, err
}

func connect() (*sql.DB, error) {
	return sql.Open("mysql", fmt.Sprintf("%s:%s@unix(%s)/%s",
		os.Getenv("DB_USER"), os.Getenv("DB_PASSWORD"), os.Getenv("DB_SOCKET"), os.Getenv("DB_NAME")))
}

func placeOrder(tx *sql.Tx, order int64) error {
	_, err := tx.Exec("INSERT INTO shop_order (id, state) VALUES (?, 'new')", order)
	if err == nil {
		body := []byte(strconv.FormatInt(order, 10))
		_, err = dqAdd(tx, "order.cancel-unpaid", fmt.Sprintf("order-%d", order), body, 30*60*1000)
	}
	return err
}

func payOrder(tx *sql.Tx, order int64) error {
	_, err := tx.Exec("UPDATE shop_order SET state = 'paid' WHERE id = ?", order)
	if err == nil {
		_, err = dqCancelKey(tx, "order.cancel-unpaid", fmt.Sprintf("order-%d", order))
	}
	return err
}

func transaction(db *sql.DB, order int64, do func(*sql.Tx, int64) error) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	if err = do(tx, order); err != nil {
		tx.Rollback() // neither an order nor a task
		return err
	}
	return tx.Commit()
}

func main() {
	db, err := connect()
	if err != nil {
		log.Fatal(err)
	}
	order, err := strconv.ParseInt(os.Args[1], 10, 64)
	if err == nil && len(os.Args) > 2 {
		err = transaction(db, order, payOrder)
	} else if err == nil {
		err = transaction(db, order, placeOrder)
	}
	if err != nil {
		log.Fatal(err)
	}
}
