/* uv_await.cpp - co_await on a libuv loop: hundreds of requests at once, each a
 * coroutine that reads from top to bottom, and none of them blocks.
 *
 * The network is a timer here: an answer comes a few ms after the request, or
 * does not come at all. Then a second request is sent beside it, after 20 ms:
 * `hedge=20ms` in the policy is all that is needed for it. */
#include <cstdio>

#include <stagger/uv.hpp>

namespace
{

/* A coroutine that runs by itself; in your program it is your task type. */
struct program {
    struct promise_type {
        program get_return_object()
        {
            return {};
        }
        std::suspend_never initial_suspend()
        {
            return {};
        }
        std::suspend_never final_suspend() noexcept
        {
            return {};
        }
        void return_void()
        {
        }
        void unhandled_exception()
        {
            std::terminate();
        }
    };
};

/* A request, to be awaited: the status of its answer. */
class request
{
  public:
    request(uv_loop_t *loop, int number, stagger::uv::attempt &a)
        : status_((number + static_cast<int>(a.number())) % 3 == 0 ? 200 : 503),
          is_lost_(number % 10 == 0 && a.number() == 1 && a.hedge() == 0)
    {
        uv_timer_init(loop, &socket_);
        socket_.data = this;
        a.on_abandon([this] { end(0); });
    }

    request(const request &) = delete;

    bool await_ready() const
    {
        return false;
    }

    void await_suspend(std::coroutine_handle<> waiter)
    {
        waiter_ = waiter;
        if (!is_lost_)
            uv_timer_start(&socket_, on_answer, 3, 0);
    }

    int await_resume() const
    {
        return status_;
    }

  private:
    static void on_answer(uv_timer_t *socket)
    {
        auto *self = static_cast<request *>(socket->data);

        self->end(self->status_);
    }

    /* It is resumed when libuv has let go of its memory. An answer may come in
     * the very turn in which it is stopped. */
    void end(int status)
    {
        if (uv_is_closing(reinterpret_cast<uv_handle_t *>(&socket_)))
            return;
        status_ = status;
        uv_close(reinterpret_cast<uv_handle_t *>(&socket_), [](uv_handle_t *h) {
            static_cast<request *>(h->data)->waiter_.resume();
        });
    }

    uv_timer_t socket_;
    std::coroutine_handle<> waiter_;
    int status_;
    bool is_lost_;
};

program ask(uv_loop_t *loop, const stagger::policy &policy, int number,
            unsigned &done, unsigned &attempts)
{
    try {
        int status = co_await stagger::uv::retry(
            loop, policy,
            [&](stagger::uv::attempt &a) {
                attempts++;
                return request(loop, number, a);
            },
            [](int answer) { return stg_answered(answer); });

        done += status == 200;
    } catch (const stagger::gave_up &e) {
        std::printf("request %d: %s\n", number, e.what());
    }
}

} // namespace

int main()
{
    constexpr int requests = 300;
    uv_loop_t *loop = uv_default_loop();
    stagger::policy policy(
        "interactive base=5ms attempt-timeout=100ms "
        "hedge=20ms");
    unsigned done = 0, attempts = 0;

    for (int i = 0; i < requests; i++)
        ask(loop, policy, i, done, attempts);
    uv_run(loop, UV_RUN_DEFAULT);
    std::printf("%u of %d done, after %u attempts\n", done, requests, attempts);
    return done == requests && uv_loop_close(loop) == 0 ? 0 : 1;
}
