module fanwire.example/interop

go 1.19

require (
	github.com/coder/websocket v1.8.12
	github.com/gorilla/websocket v1.5.3
	github.com/lxzan/gws v1.8.8
)

require (
	github.com/dolthub/maphash v0.1.0 // indirect
	github.com/klauspost/compress v1.17.5 // indirect
)
