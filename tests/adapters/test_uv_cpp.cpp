/* co_await on a libuv loop, on virtual time. */
#include <stagger/uv.hpp>

#define _Noreturn [[noreturn]]
extern "C" {
#include "tests/adapters/story.h"
#include "tests/harness.h"
}
#undef _Noreturn

namespace
{

using namespace std::chrono_literals;
using stagger::uv::retry;

/* A loop, and the virtual time of what runs on it. */
struct world : story {
    uv_loop_t loop;

    explicit world(const char *words = "") : story()
    {
        story_begin(this, words);
        CHECK(uv_loop_init(&loop) == 0);
    }

    stagger::options options() const
    {
        stagger::options o;

        o.env = &env;
        return o;
    }

    /* Runs all there is to its end: no handle is left. */
    void run()
    {
        CHECK_INT(uv_run(&loop, UV_RUN_DEFAULT), 0);
        CHECK_INT(uv_loop_close(&loop), 0);
    }
};

/* A coroutine that begins at once, and is not awaited. */
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

/* To be awaited: what somebody resumes. */
struct gate {
    std::coroutine_handle<> waiter;

    bool await_ready() const
    {
        return false;
    }
    void await_suspend(std::coroutine_handle<> h)
    {
        waiter = h;
    }
    void await_resume()
    {
    }
    void open()
    {
        std::exchange(waiter, nullptr).resume();
    }
};

/* To be awaited: the next outcome of the story, at once. */
struct answer {
    world &w;
    std::uint32_t number;

    bool await_ready() const
    {
        return true;
    }
    void await_suspend(std::coroutine_handle<>)
    {
    }
    std::uint32_t await_resume()
    {
        stagger::outcome o = story_attempt(&w);

        if (!o.is_ok())
            throw stagger::failure(o);
        return number;
    }
};

const char *const steady = "fixed base=100ms jitter=none attempts=3";

} // namespace

TEST(uv_cpp, resumes_with_the_value)
{
    world w("503 refused 200");
    std::uint32_t number = 0;

    [](world &there, std::uint32_t &n) -> program {
        n = co_await retry(&there.loop, steady, there.options(),
                           [&](stagger::uv::attempt &a) {
                               return answer{there, a.number()};
                           });
    }(w, number);
    w.run();
    CHECK_U64(number, 3);
    CHECK_TRACE(w.trace,
                "     0 ms  503\n"
                "   100 ms  refused\n"
                "   200 ms  200\n");
}

TEST(uv_cpp, gives_up_with_reason_history_and_the_last_exception)
{
    world w("503 503 reset");
    std::string said;

    [](world &there, std::string &text) -> program {
        try {
            co_await retry(&there.loop, steady, there.options(), [&] {
                return answer{there, 0};
            });
        } catch (const stagger::gave_up &e) {
            text = e.what();
            CHECK_U64(e.history().size(), 3);
            CHECK(e.history()[0].waited == 100ms);
            CHECK(e.last() != nullptr);
        }
    }(w, said);
    w.run();
    CHECK_STR(said.c_str(),
              "gave up after 3 attempts in 200 ms: reset (attempts)");
}

TEST(uv_cpp, refuses_a_call_that_is_wrong)
{
    world w;
    bool is_refused = false;

    [](world &there, bool &refused) -> program {
        try {
            co_await retry(&there.loop, "backend",
                           [] { return std::suspend_never(); });
        } catch (const std::invalid_argument &) {
            refused = true;
        }
    }(w, is_refused);
    CHECK(is_refused);
    w.run();
}

TEST(uv_cpp, has_a_value_judged)
{
    world w("200 200");
    std::uint32_t number = 0;

    [](world &there, std::uint32_t &n) -> program {
        n = co_await retry(
            &there.loop, steady, there.options(),
            [&](stagger::uv::attempt &a) {
                return answer{there, a.number()};
            },
            [](std::uint32_t is) { return is < 2; });
    }(w, number);
    w.run();
    CHECK_U64(number, 2);
}

/* The attempt is told to stop, ends, and the next one follows. */
TEST(uv_cpp, abandons_an_attempt_whose_time_is_over)
{
    world w;
    std::string trace;

    [](world &there, std::string &text) -> program {
        gate answered;

        try {
            co_await retry(
                &there.loop,
                "fixed base=100ms jitter=none attempts=2 attempt-timeout=1s",
                there.options(), [&](stagger::uv::attempt &a) -> gate & {
                    CHECK(a.timeout() == 1s);
                    a.on_abandon([&] {
                        text += "stop ";
                        answered.open();
                    });
                    return answered;
                });
        } catch (const stagger::gave_up &e) {
            text += e.what();
            CHECK_U64(e.history().size(), 2);
            CHECK_STR(e.history()[0].outcome.name().c_str(), "timeout");
            CHECK(e.history()[0].waited == 100ms);
        }
    }(w, trace);
    w.run();
    CHECK_STR(
        trace.c_str(),
        "stop stop gave up after 2 attempts in 2.1 s: timeout (attempts)");
}

/* What the function refers to is still there when a late attempt ends. */
TEST(uv_cpp, goes_on_when_its_last_attempt_has_ended)
{
    world w;
    gate late;
    bool has_ended = false;

    [](world &there, gate &g, bool &ended) -> program {
        co_await retry(&there.loop,
                       "fixed base=100ms jitter=none attempt-timeout=1s",
                       there.options(), [&](stagger::uv::attempt &a) {
                           struct either {
                               gate *g;
                               bool await_ready() const
                               {
                                   return g == nullptr;
                               }
                               void await_suspend(std::coroutine_handle<> h)
                               {
                                   g->await_suspend(h);
                               }
                               void await_resume()
                               {
                               }
                           };
                           return either{a.number() == 1 ? &g : nullptr};
                       });
        ended = true;
    }(w, late, has_ended);
    w.run();
    CHECK_U64(w.now, 1100 * STG_MS); // the second attempt is done
    CHECK(!has_ended);
    late.open();
    CHECK(has_ended);
}

TEST(uv_cpp, is_cancelled_in_a_wait_and_in_an_attempt)
{
    for (const char *when : {"wait", "attempt"}) {
        world w("503");
        stagger::cancel stop;
        std::string said;

        [](world &there, stagger::cancel &c, std::string &text,
           bool in_wait) -> program {
            stagger::options o = there.options();
            gate never;

            o.cancel = &c;
            try {
                co_await retry(&there.loop, steady, o,
                               [&](stagger::uv::attempt &a) -> gate & {
                                   a.on_abandon([&] { never.open(); });
                                   c.set();
                                   if (in_wait)
                                       throw stagger::failure(
                                           stg_answered(503));
                                   return never;
                               });
            } catch (const stagger::gave_up &e) {
                text = e.what();
                CHECK_INT(e.why(), STG_WHY_CANCELLED);
            }
        }(w, stop, said, *when == 'w');
        w.run();
        CHECK(!said.empty());
    }
}

TEST(uv_cpp, runs_many_at_once_on_one_peer)
{
    world w;
    stagger::peer peer("fixed base=1s jitter=none attempts=9 rate=1000/s");
    unsigned done = 0;

    for (int i = 0; i < 1000; i++)
        [](world &there, stagger::peer &p, unsigned &n) -> program {
            co_await retry(&there.loop, p, there.options(),
                           [](stagger::uv::attempt &a) {
                               if (a.number() < 3)
                                   throw stagger::failure(stg_answered(503));
                               return std::suspend_never();
                           });
            n++;
        }(w, peer, done);
    w.run();
    CHECK_U64(done, 1000);
}
