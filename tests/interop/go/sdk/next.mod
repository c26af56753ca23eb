module fanwire.example/interop/sdk

go 1.22

require (
	github.com/centrifugal/centrifuge-go v0.10.12
	github.com/centrifugal/gocent/v3 v3.3.0
	github.com/gorilla/websocket v1.5.0
)

require (
	github.com/centrifugal/protocol v0.16.0 // indirect
	github.com/josharian/intern v1.0.0 // indirect
	github.com/jpillora/backoff v1.0.0 // indirect
	github.com/mailru/easyjson v0.7.7 // indirect
	github.com/planetscale/vtprotobuf v0.6.0 // indirect
	github.com/segmentio/asm v1.2.0 // indirect
	github.com/segmentio/encoding v0.4.0 // indirect
	github.com/shadowspore/fossil-delta v0.0.0-20241213113458-1d797d70cbe3 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	golang.org/x/sys v0.11.0 // indirect
	google.golang.org/protobuf v1.36.6 // indirect
)
