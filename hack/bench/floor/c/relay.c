// The floor in C; see ../doc.go for what it does. Linux.
//
//   relay LISTEN_IP BACKUP_IP BACKUP_PORT REQUEST REPLY KIND
//
// BACKUP_PORT 0: do not forward messages. KIND: "epoll" one loop, one shared
// link; "threads" a thread and a link per connection; "sink" the second process
// of "epoll", "sink-threads" that of "threads".
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_SIZE = 128 << 10, MAX_MESSAGE = 64 << 10, MAX_FD = 4096, MAX_OWED = 1 << 16 };

static size_t request, reply;
static int sink;
static const char *backup_ip;
static int backup_port;

static void die(const char *what) {
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static int tune(int fd) {
	int one = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

static struct sockaddr_in address(const char *ip, int port) {
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	if (inet_pton(AF_INET, ip, &a.sin_addr) != 1) {
		errno = EINVAL;
		die(ip);
	}
	return a;
}

static int dial(void) {
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = address(backup_ip, backup_port);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) != 0) die("connect to the second process");
	return tune(fd);
}

// put_answers writes the answers number from+1..from+n of a connection.
static size_t put_answers(char *out, uint64_t from, uint64_t n) {
	for (uint64_t i = 1; i <= n; i++, out += reply) {
		uint64_t count = from + i;
		memcpy(out, &count, 8);
		memset(out + 8, 0, reply - 8);
	}
	return n * reply;
}

// ---- one epoll loop, one shared link

struct conn {
	int fd, dirty, blocked;
	size_t in_len, out_len, out_cap;
	uint64_t answered;
	char *in, *out;
};

static int epfd, dirty_count;
static struct conn *conns[MAX_FD], *link_conn, *dirty[MAX_FD];
static struct { struct conn *c; uint64_t n; } owed[MAX_OWED];
static uint64_t head, tail, confirmed;
static char buf[MAX_MESSAGE + READ_SIZE];

static void watch(int op, int fd, uint32_t mask) {
	struct epoll_event ev = {.events = mask, .data.fd = fd};
	if (epoll_ctl(epfd, op, fd, &ev) != 0) die("epoll_ctl");
}

static struct conn *add(int fd) {
	if (fd >= MAX_FD) {
		errno = EMFILE;
		die("connections");
	}
	struct conn *c = calloc(1, sizeof *c);
	c->fd = fd;
	c->in = malloc(MAX_MESSAGE);
	c->out = malloc(c->out_cap = 4 * READ_SIZE);
	conns[fd] = c;
	watch(EPOLL_CTL_ADD, fd, EPOLLIN);
	return c;
}

static void mark(struct conn *c) {
	if (!c->dirty) {
		c->dirty = 1;
		dirty[dirty_count++] = c;
	}
}

static char *room(struct conn *c, size_t n) {
	while (c->out_len + n > c->out_cap) c->out = realloc(c->out, c->out_cap *= 2);
	return c->out + c->out_len;
}

static void answer(struct conn *c, uint64_t n) {
	if (c->fd < 0) return;
	mark(c);
	if (sink) {
		uint64_t count = c->answered + n;
		memcpy(room(c, 8), &count, 8);
		c->out_len += 8;
	} else {
		c->out_len += put_answers(room(c, n * reply), c->answered, n);
	}
	c->answered += n;
}

// take_in receives into buf behind what c kept; returns the bytes there, 0 for nothing, -1 for the end.
static ssize_t take_in(struct conn *c) {
	memcpy(buf, c->in, c->in_len);
	ssize_t n = recv(c->fd, buf + c->in_len, READ_SIZE, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
	return n <= 0 ? -1 : (ssize_t)c->in_len + n;
}

static void keep(struct conn *c, size_t from, size_t to) {
	c->in_len = to - from;
	memcpy(c->in, buf + from, c->in_len);
}

static void take(struct conn *c) {
	ssize_t got = take_in(c);
	if (got == 0) return;
	if (got < 0) {
		conns[c->fd] = NULL;
		close(c->fd);
		c->fd = -1;
		return;
	}
	uint64_t whole = got / request;
	keep(c, whole * request, got);
	if (whole == 0) return;
	if (!link_conn) {
		answer(c, whole);
		return;
	}
	memcpy(room(link_conn, whole * request), buf, whole * request);
	link_conn->out_len += whole * request;
	mark(link_conn);
	if (tail - head == MAX_OWED) {
		errno = ENOBUFS;
		die("messages waiting for the second process");
	}
	owed[tail % MAX_OWED].c = c;
	owed[tail++ % MAX_OWED].n = whole;
}

static void confirm(void) {
	ssize_t got = take_in(link_conn);
	if (got == 0) return;
	if (got < 0) die("the second process is gone");
	size_t whole = got / 8;
	keep(link_conn, whole * 8, got);
	if (whole == 0) return;
	uint64_t count;
	memcpy(&count, buf + (whole - 1) * 8, 8);
	uint64_t fresh = count - confirmed;
	confirmed = count;
	while (fresh > 0) {
		uint64_t *n = &owed[head % MAX_OWED].n, k = *n < fresh ? *n : fresh;
		answer(owed[head % MAX_OWED].c, k);
		fresh -= k;
		if ((*n -= k) == 0) head++;
	}
}

static void flush(void) {
	for (int i = 0; i < dirty_count; i++) {
		struct conn *c = dirty[i];
		c->dirty = 0;
		if (c->fd < 0 || c->blocked || c->out_len == 0) continue;
		ssize_t n = send(c->fd, c->out, c->out_len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			if (c == link_conn) die("write to the second process");
			c->out_len = 0; // its next read tells that it is gone
			continue;
		}
		if (n < 0) n = 0;
		memmove(c->out, c->out + n, c->out_len -= n);
		if (c->out_len > 0) {
			c->blocked = 1;
			watch(EPOLL_CTL_MOD, c->fd, EPOLLIN | EPOLLOUT);
		}
	}
	dirty_count = 0;
}

static void loop(int listener) {
	struct epoll_event events[128];
	for (;;) {
		int n = epoll_wait(epfd, events, 128, -1);
		if (n < 0 && errno != EINTR) die("epoll_wait");
		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;
			if (fd == listener) {
				int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
				if (peer >= 0) add(tune(peer));
				continue;
			}
			struct conn *c = conns[fd];
			if (!c) continue;
			if (events[i].events & EPOLLOUT) {
				c->blocked = 0;
				mark(c);
				watch(EPOLL_CTL_MOD, fd, EPOLLIN);
			} else if (c == link_conn) {
				confirm();
			} else {
				take(c);
			}
		}
		flush();
	}
}

// ---- a thread per connection

static int send_all(int fd, const char *p, size_t n) {
	while (n > 0) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
		if (k < 0 && errno == EINTR) continue;
		if (k <= 0) return -1;
		p += k;
		n -= k;
	}
	return 0;
}

// await reads counts of the second process until it has all of given.
static int await(int fd, uint64_t given) {
	char in[4096];
	size_t have = 0;
	for (;;) {
		ssize_t n = recv(fd, in + have, sizeof in - have, 0);
		if (n < 0 && errno == EINTR) continue;
		if (n <= 0) return -1;
		have += n;
		size_t whole = have / 8;
		uint64_t count = 0;
		if (whole > 0) memcpy(&count, in + (whole - 1) * 8, 8);
		memmove(in, in + whole * 8, have -= whole * 8);
		if (count >= given) return 0;
	}
}

static void *serve(void *arg) {
	int fd = (int)(intptr_t)arg, link = backup_port ? dial() : -1;
	char *in = malloc(MAX_MESSAGE + READ_SIZE), *out = NULL;
	size_t have = 0, out_cap = 0;
	uint64_t answered = 0;
	for (;;) {
		ssize_t n = recv(fd, in + have, READ_SIZE, 0);
		if (n < 0 && errno == EINTR) continue;
		if (n <= 0) break;
		have += n;
		uint64_t whole = have / request;
		if (whole == 0) continue;
		if (link >= 0 && (send_all(link, in, whole * request) != 0 || await(link, answered + whole) != 0)) die("the second process is gone");
		if (sink) {
			uint64_t count = answered + whole;
			if (send_all(fd, (char *)&count, 8) != 0) break;
		} else {
			if (whole * reply > out_cap) out = realloc(out, out_cap = whole * reply);
			if (send_all(fd, out, put_answers(out, answered, whole)) != 0) break;
		}
		answered += whole;
		memmove(in, in + whole * request, have -= whole * request);
	}
	close(fd);
	if (link >= 0) close(link);
	free(in);
	free(out);
	return NULL;
}

static void threads(int listener) {
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0) continue;
		pthread_t t;
		if (pthread_create(&t, NULL, serve, (void *)(intptr_t)tune(fd)) != 0) die("pthread_create");
		pthread_detach(t);
	}
}

int main(int argc, char **argv) {
	if (argc != 7) {
		fprintf(stderr, "usage: relay LISTEN_IP BACKUP_IP BACKUP_PORT REQUEST REPLY epoll|threads|sink|sink-threads\n");
		return 2;
	}
	backup_ip = argv[2];
	backup_port = atoi(argv[3]);
	request = strtoul(argv[4], NULL, 10);
	reply = strtoul(argv[5], NULL, 10);
	const char *kind = argv[6];
	sink = strncmp(kind, "sink", 4) == 0;
	int threaded = strstr(kind, "threads") != NULL;
	if (request < 8 || request > MAX_MESSAGE || reply < 8 || reply > MAX_MESSAGE) {
		fprintf(stderr, "REQUEST and REPLY: allowed: 8..%d bytes\n", MAX_MESSAGE);
		return 2;
	}
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = address(argv[1], 0);
	socklen_t len = sizeof a;
	if (listener < 0 || bind(listener, (struct sockaddr *)&a, sizeof a) != 0 || listen(listener, 1024) != 0 ||
	    getsockname(listener, (struct sockaddr *)&a, &len) != 0)
		die("listen");
	if (!threaded) {
		if ((epfd = epoll_create1(EPOLL_CLOEXEC)) < 0) die("epoll_create1");
		if (backup_port) link_conn = add(dial());
		watch(EPOLL_CTL_ADD, listener, EPOLLIN);
	}
	printf("listening %s:%d\n", argv[1], ntohs(a.sin_port));
	fflush(stdout);
	if (threaded) threads(listener);
	loop(listener);
}
