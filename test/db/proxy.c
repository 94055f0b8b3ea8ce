/*
 * proxy.c - a proxy between client and server that loses an answer on demand (see harness.h).
 *
 * One thread, one connection at a time: the clients under test make no more.
 */
#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct proxy {
    char dir[64], path[96];
    int listen_fd, stop[2];
    pthread_t thread;
    pthread_mutex_t lock;
    char *pattern; /* NULL: nothing to cut */
    bool deliver, all;
    unsigned cuts;
    struct conf_mysql conf;
    struct db *db;
};

static struct sockaddr_un address(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    return a;
}

static int dial(const char *path)
{
    struct sockaddr_un a = address(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a)) {
        perror(path);
        abort();
    }
    return fd;
}

static bool send_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k <= 0)
            return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

/* Whether this piece of the client's stream is to be cut. */
static bool cut_here(struct proxy *p, const char *data, size_t n, bool *deliver)
{
    pthread_mutex_lock(&p->lock);
    bool hit = p->pattern && memmem(data, n, p->pattern, strlen(p->pattern));
    if (hit) {
        if (!p->all) {
            free(p->pattern);
            p->pattern = NULL;
        }
        *deliver = p->deliver;
        p->cuts++;
    }
    pthread_mutex_unlock(&p->lock);
    return hit;
}

/* Passes bytes on until an end closes, or the cut. */
static void pass(struct proxy *p, int client, int server)
{
    static char data[1 << 20];
    bool deliver, cut = false;

    for (;;) {
        struct pollfd fds[3] = {{client, POLLIN, 0}, {server, POLLIN, 0}, {p->stop[0], POLLIN, 0}};
        if (poll(fds, 3, -1) < 0 && errno == EINTR)
            continue;
        if (fds[2].revents)
            return;
        for (int i = 0; i < 2; i++) {
            if (!fds[i].revents)
                continue;
            ssize_t n = recv(fds[i].fd, data, sizeof data, 0);
            if (n <= 0)
                return;
            if (cut && i == 1) /* the answer: the statement has been carried out */
                return;
            if (i == 0 && cut_here(p, data, (size_t)n, &deliver)) {
                if (!deliver)
                    return;
                cut = true;
            }
            if (!send_all(fds[1 - i].fd, data, (size_t)n))
                return;
        }
    }
}

static void *serve(void *arg)
{
    struct proxy *p = arg;

    for (;;) {
        struct pollfd fds[2] = {{p->listen_fd, POLLIN, 0}, {p->stop[0], POLLIN, 0}};
        if (poll(fds, 2, -1) < 0 && errno == EINTR)
            continue;
        if (fds[1].revents)
            return NULL;
        int client = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        int server = dial(harness_conf->socket);
        pass(p, client, server);
        close(client);
        close(server);
    }
}

struct proxy *proxy_new(void)
{
    struct proxy *p = mem_zero(1, sizeof *p);

    snprintf(p->dir, sizeof p->dir, "/tmp/dq-proxy.XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->path, sizeof p->path, "%s/s", p->dir);
    struct sockaddr_un a = address(p->path);
    p->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listen_fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(p->listen_fd, 8), 0);
    assert_int_equal(pipe(p->stop), 0);
    pthread_mutex_init(&p->lock, NULL);
    p->conf = *harness_conf;
    p->conf.socket = p->path;
    p->db = db_new(&p->conf);
    assert_int_equal(pthread_create(&p->thread, NULL, serve, p), 0);
    return p;
}

struct db *proxy_db(struct proxy *p)
{
    return p->db;
}

static void set_cut(struct proxy *p, const char *pattern, bool deliver, bool all)
{
    pthread_mutex_lock(&p->lock);
    free(p->pattern);
    p->pattern = mem_strdup(pattern);
    p->deliver = deliver;
    p->all = all;
    pthread_mutex_unlock(&p->lock);
}

void proxy_cut(struct proxy *p, const char *pattern, bool deliver)
{
    set_cut(p, pattern, deliver, false);
}

void proxy_cut_all(struct proxy *p, const char *pattern, bool deliver)
{
    set_cut(p, pattern, deliver, true);
}

unsigned proxy_cuts(struct proxy *p)
{
    pthread_mutex_lock(&p->lock);
    unsigned cuts = p->cuts;
    pthread_mutex_unlock(&p->lock);
    return cuts;
}

void proxy_free(struct proxy *p)
{
    db_free(p->db);
    assert_int_equal(write(p->stop[1], "", 1), 1);
    pthread_join(p->thread, NULL);
    close(p->listen_fd);
    close(p->stop[0]);
    close(p->stop[1]);
    unlink(p->path);
    rmdir(p->dir);
    free(p->pattern);
    free(p);
}
