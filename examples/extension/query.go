// A Go program that asks a store in SQL, over mattn/go-sqlite3.
//
//	GO111MODULE=off GOPATH=/usr/share/gocode go run query.go build/release/lib/tamis.so DIRECTORY
package main

import (
	"database/sql"
	"fmt"
	"log"
	"os"

	"github.com/mattn/go-sqlite3"
)

func main() {
	sql.Register("sqlite3_tamis", &sqlite3.SQLiteDriver{Extensions: []string{os.Args[1]}})
	db, err := sql.Open("sqlite3_tamis", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection would be a database in memory of its own

	for _, statement := range []struct {
		text      string
		arguments []any
	}{
		{"SELECT tamis_open(?)", []any{os.Args[2]}},
		{"CREATE VIRTUAL TABLE IF NOT EXISTS people USING tamis(" +
			"name, born int64, town, key (name), index town (town))", nil},
		{"INSERT OR REPLACE INTO people VALUES (?, ?, ?)", []any{"ada", 1815, "London"}},
		{"INSERT OR REPLACE INTO people VALUES (?, ?, ?)", []any{"grace", 1906, "New York"}},
	} {
		if _, err := db.Exec(statement.text, statement.arguments...); err != nil {
			log.Fatal(err)
		}
	}

	rows, err := db.Query("SELECT name, born FROM people WHERE town = ?", "London")
	if err != nil {
		log.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var born int64
		if err := rows.Scan(&name, &born); err != nil {
			log.Fatal(err)
		}
		fmt.Println(name, born)
	}
	if err := rows.Err(); err != nil {
		log.Fatal(err)
	}
}
