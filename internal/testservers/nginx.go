package testservers

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// NginxServer is a running nginx.
type NginxServer struct {
	*Process
	port int
	dir  string
}

// Nginx starts an nginx whose http block holds the text http, in which ${PORT} stands for the port to listen on and ${DIR}
// for a folder of its own. It waits until the port accepts connections.
//
//	testservers.Nginx(t, `server { listen 127.0.0.1:${PORT}; location / { return 200 "hello"; } }`)
func Nginx(tb TB, http string) *NginxServer {
	tb.Helper()
	program := Need(tb, "nginx")
	n := &NginxServer{port: reservePort(tb), dir: tempDir(tb)}
	conf := filepath.Join(n.dir, "nginx.conf")
	if err := os.WriteFile(conf, []byte(n.config(http)), 0o600); err != nil {
		tb.Fatalf("testservers: %v", err)
	}
	n.Process = Start(tb, Command{Path: program, Args: []string{"-p", n.dir, "-c", conf}, Dir: n.dir, Gentle: true})
	err := pollFor(startTimeout, func() error {
		if status, ended := n.Exited(); ended {
			tb.Fatalf("testservers: nginx ended: %s\n%s", status, n.LogTail())
		}
		c, err := net.Dial("tcp", n.Addr())
		if err != nil {
			return err
		}
		return c.Close()
	})
	if err != nil {
		tb.Fatalf("testservers: nginx: %v\n%s", err, n.LogTail())
	}
	return n
}

func (n *NginxServer) config(http string) string {
	user := ""
	if os.Getuid() == 0 {
		user = "user root;\n" // the workers must be able to write into the folder
	}
	temp := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += fmt.Sprintf("  %s_temp_path %s;\n", kind, filepath.Join(n.dir, kind))
	}
	body := strings.NewReplacer("${PORT}", fmt.Sprint(n.port), "${DIR}", n.dir).Replace(http)
	return user + "daemon off;\nerror_log stderr warn;\npid " + filepath.Join(n.dir, "nginx.pid") + ";\n" +
		"worker_processes auto;\nevents { worker_connections 4096; }\nhttp {\n  access_log off;\n" + temp + body + "\n}\n"
}

// Addr returns HOST:PORT.
func (n *NginxServer) Addr() string { return loopback(n.port) }

// URL returns http://HOST:PORT.
func (n *NginxServer) URL() string { return "http://" + n.Addr() }

// Dir returns the folder that ${DIR} stands for.
func (n *NginxServer) Dir() string { return n.dir }
