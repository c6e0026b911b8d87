package main

import (
	"os"
	"time"
)

func main() {
	db := os.Getenv("DATABASE_PATH")
	base := os.Getenv("MAIL_API_URL")
	redis := os.Getenv("REDIS_URL")
	switch os.Args[1] {
	case "enqueue":
		actions, err := os.ReadFile(os.Args[2])
		enqueue(db, actions, err)
	case "run":
		for {
			send(db, base, redis)
			time.Sleep(2 * time.Second)
		}
	}
}
