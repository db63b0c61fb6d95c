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

/* A retry returns only after its late attempt has ended, so that the objects
 * which the function refers to still exist. */
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

/* -- several attempts at once */

namespace
{

/* A coroutine to be awaited, once. */
template <class T> struct task {
    struct promise_type {
        std::optional<T> value;
        std::exception_ptr error;
        std::coroutine_handle<> waiter;

        task get_return_object()
        {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept
        {
            return {};
        }
        auto final_suspend() noexcept
        {
            struct back {
                bool await_ready() noexcept
                {
                    return false;
                }
                std::coroutine_handle<>
                await_suspend(std::coroutine_handle<promise_type> h) noexcept
                {
                    return h.promise().waiter;
                }
                void await_resume() noexcept
                {
                }
            };
            return back();
        }
        void return_value(T v)
        {
            value = std::move(v);
        }
        void unhandled_exception()
        {
            error = std::current_exception();
        }
    };

    task(std::coroutine_handle<promise_type> h) : handle(h)
    {
    }
    task(task &&other) noexcept : handle(std::exchange(other.handle, {}))
    {
    }
    ~task()
    {
        if (handle)
            handle.destroy();
    }
    bool await_ready() const
    {
        return false;
    }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> h)
    {
        handle.promise().waiter = h;
        return handle;
    }
    T await_resume()
    {
        if (handle.promise().error != nullptr)
            std::rethrow_exception(handle.promise().error);
        return std::move(*handle.promise().value);
    }

    std::coroutine_handle<promise_type> handle;
};

/* To be awaited: so much virtual time. Stopped, it ends in a turn of the loop,
 * as a socket that is closed does. */
struct timer {
    world &w;
    stg_uv op{};
    stg_policy policy = policy_of("fixed base=0 jitter=none deadline=none");
    std::coroutine_handle<> waiter{};

    timer(world &there, stg_ns delay) : w(there)
    {
        policy.backoff.base = delay;
        op.data = this;
    }
    timer(const timer &) = delete;

    void stop()
    {
        stg_uv_cancel(&op);
    }
    bool await_ready() const
    {
        return policy.backoff.base == 0;
    }
    void await_suspend(std::coroutine_handle<> h)
    {
        stg_with with{};

        with.env = &w.env;
        waiter = h;
        CHECK(stg_uv_retry(&w.loop, &op, &policy, &with, pass_time, end) ==
              STG_OK);
    }
    void await_resume() const
    {
        if (op.report.why == STG_WHY_CANCELLED)
            throw stagger::failure(stg_failed(STG_FAULT_CANCELLED));
    }

    static void pass_time(stg_uv *op, std::uint32_t attempt)
    {
        stg_uv_report(op, attempt,
                      attempt == 1 ? stg_failed(STG_FAULT_REFUSED) : stg_ok());
    }
    static void end(stg_uv *op, const stg_report *)
    {
        static_cast<timer *>(op->data)->waiter.resume();
    }
};

/* An attempt's frame: what it says last is that it is gone. */
struct frame {
    world &w;
    std::string name;

    frame(world &there, const stagger::uv::attempt &a)
        : w(there),
          name(std::to_string(a.number()) +
               (a.hedge() == 0 ? "" : "+" + std::to_string(a.hedge())))
    {
    }
    ~frame()
    {
        say("is gone");
    }
    void say(const char *text) const
    {
        story_say(&w, "%s %s", name.c_str(), text);
    }
};

/* The next word of the script: 200@20 is a 200 after 20 ms; deaf@20 is a 200
 * that cannot be stopped. */
task<std::string> get(world &w, stagger::uv::attempt &a)
{
    frame f(w, a);
    char word[32];
    int length = 0;

    CHECK(sscanf(w.script, " %31s%n", word, &length) == 1);
    w.script += length;
    f.say(word);

    const char *at = strchr(word, '@');
    timer p(w, at == nullptr ? 0 : std::strtoull(at + 1, nullptr, 10) * STG_MS);

    a.on_abandon([&] {
        f.say("stops");
        if (*word != 'd')
            p.stop();
    });
    co_await p;
    if (*word != 'd' && atoi(word) != 200)
        throw stagger::failure(stg_answered(atoi(word)));
    co_return f.name;
}

template <class... Rest>
program tell(world &w, stagger::policy policy, stagger::options o, Rest... rest)
{
    try {
        std::string name = co_await retry(
            &w.loop, policy, o,
            [&w](stagger::uv::attempt &a) { return get(w, a); }, rest...);

        story_say(&w, "value of %s", name.c_str());
    } catch (const stagger::gave_up &e) {
        story_say(&w, "%s", e.what());
        for (const stagger::failed_attempt &f : e.history())
            story_say(&w, "  %u+%u %s", f.number, f.hedge,
                      f.outcome.name().c_str());
    } catch (const std::exception &e) {
        story_say(&w, "threw %s", e.what());
    }
}

template <class... Rest>
std::string trace(const char *policy, const char *words, Rest... rest)
{
    world w(words);

    tell(w, policy, w.options(), std::move(rest)...);
    w.run();
    return w.trace;
}

} // namespace

TEST(uv_cpp, hedges_a_slow_attempt_and_stops_the_loser)
{
    CHECK_TRACE(trace("hedge=100ms", "200@500 200@20").c_str(),
                "     0 ms  1 200@500\n"
                "   100 ms  1+1 200@20\n"
                "   120 ms  1+1 is gone\n"
                "   120 ms  1 stops\n"
                "   120 ms  1 is gone\n"
                "   120 ms  value of 1+1\n");
    // The first one wins; a hedge that ends before its function returns.
    CHECK_TRACE(trace("hedge=100ms", "200@150 200@500").c_str(),
                "     0 ms  1 200@150\n"
                "   100 ms  1+1 200@500\n"
                "   150 ms  1 is gone\n"
                "   150 ms  1+1 stops\n"
                "   150 ms  1+1 is gone\n"
                "   150 ms  value of 1\n");
    CHECK_TRACE(trace("hedge=100ms:2", "200@500 200@400 200").c_str(),
                "     0 ms  1 200@500\n"
                "   100 ms  1+1 200@400\n"
                "   200 ms  1+2 200\n"
                "   200 ms  1+2 is gone\n"
                "   200 ms  1 stops\n"
                "   200 ms  1+1 stops\n"
                "   200 ms  1+1 is gone\n"
                "   200 ms  1 is gone\n"
                "   200 ms  value of 1+2\n");
}

/* It holds the call up, whose value is the winner's. */
TEST(uv_cpp, goes_on_when_a_loser_that_cannot_be_stopped_has_ended)
{
    CHECK_TRACE(trace("hedge=100ms", "deaf@500 200@20").c_str(),
                "     0 ms  1 deaf@500\n"
                "   100 ms  1+1 200@20\n"
                "   120 ms  1+1 is gone\n"
                "   120 ms  1 stops\n"
                "   500 ms  1 is gone\n"
                "   500 ms  value of 1+1\n");
}

TEST(uv_cpp, waits_for_the_others_of_a_round_and_retries_after_the_last)
{
    CHECK_TRACE(trace("fixed base=1s jitter=none hedge=100ms attempts=2",
                      "503@150 502@200 503@10 -")
                    .c_str(),
                "     0 ms  1 503@150\n"
                "   100 ms  1+1 502@200\n"
                "   150 ms  1 is gone\n"
                "   300 ms  1+1 is gone\n"
                "  1300 ms  2 503@10\n"
                "  1310 ms  2 is gone\n"
                "  1310 ms  gave up after 2 attempts and 1 hedge in 1.3 s: 503 "
                "(attempts)\n"
                "  1310 ms    1+0 503\n"
                "  1310 ms    1+1 502\n"
                "  1310 ms    2+0 503\n");
}

TEST(uv_cpp, ends_each_attempt_of_a_round_in_its_own_time)
{
    CHECK_TRACE(
        trace("attempts=1 hedge=100ms attempt-timeout=300ms", "200@900 200@900")
            .c_str(),
        "     0 ms  1 200@900\n"
        "   100 ms  1+1 200@900\n"
        "   300 ms  1 stops\n"
        "   300 ms  1 is gone\n"
        "   400 ms  1+1 stops\n"
        "   400 ms  1+1 is gone\n"
        "   400 ms  gave up after 1 attempt and 1 hedge in 400 ms: "
        "timeout (attempts)\n"
        "   400 ms    1+0 timeout\n"
        "   400 ms    1+1 timeout\n");
}

TEST(uv_cpp, cancels_all_attempts_of_a_round)
{
    world w("200@500 200@20");
    stagger::cancel stop;
    stagger::options o = w.options();

    o.cancel = &stop;
    tell(w, "hedge=100ms", o, [&](const std::string &) {
        stop.set(); // the classifier is asked about the hedge's value
        return true;
    });
    w.run();
    CHECK_TRACE(w.trace,
                "     0 ms  1 200@500\n"
                "   100 ms  1+1 200@20\n"
                "   120 ms  1+1 is gone\n"
                "   120 ms  1 stops\n"
                "   120 ms  1 is gone\n"
                "   120 ms  gave up after 1 attempt and 1 hedge in "
                "120 ms: transient (cancelled)\n"
                "   120 ms    1+1 transient\n");
}

TEST(uv_cpp, makes_no_hedge_of_what_may_not_be_repeated)
{
    world w("200@500");
    stagger::options o = w.options();

    o.method = "POST";
    tell(w, "hedge=100ms", o);
    w.run();
    CHECK_TRACE(w.trace,
                "     0 ms  1 200@500\n"
                "   500 ms  1 is gone\n"
                "   500 ms  value of 1\n");
}

/* Nor does it take a judged value for that of a later attempt, which had none. */
TEST(uv_cpp, returns_no_value_of_another_attempt_than_the_last)
{
    world w("200@150 200@900");
    stagger::options o = w.options();

    o.rethrow_last = true;
    tell(w, "attempts=1 hedge=100ms attempt-timeout=300ms", o,
         [](const std::string &) { return true; });
    w.run();
    CHECK_TRACE(w.trace,
                "     0 ms  1 200@150\n"
                "   100 ms  1+1 200@900\n"
                "   150 ms  1 is gone\n"
                "   400 ms  1+1 stops\n"
                "   400 ms  1+1 is gone\n"
                "   400 ms  gave up after 1 attempt and 1 hedge in "
                "400 ms: timeout (attempts)\n"
                "   400 ms    1+0 transient\n"
                "   400 ms    1+1 timeout\n");
}

TEST(uv_cpp, is_answered_by_its_fallback)
{
    const char *const twice = "fixed base=1s jitter=none attempts=2";
    const char *const answered =
        "     0 ms  1 503\n"
        "     0 ms  1 is gone\n"
        "  1000 ms  2 502@1\n"
        "  1001 ms  2 is gone\n"
        "  1001 ms  value of spare\n";
    auto natural = stagger::detail::natural();

    CHECK_TRACE(
        trace(twice, "503 502@1", stagger::fallback(std::string("spare")))
            .c_str(),
        answered);
    CHECK_TRACE(trace(twice, "503 502@1", natural,
                      stagger::fallback([] { return "spare"; }))
                    .c_str(),
                answered);
    CHECK_TRACE(trace(twice, "503 502@1",
                      stagger::fallback([](const stagger::gave_up &e) {
                          CHECK_INT(e.why(), STG_WHY_ATTEMPTS);
                          CHECK_U64(e.history().size(), 2);
                          return "spare";
                      }))
                    .c_str(),
                answered);
    CHECK_TRACE(trace(twice, "503 200", stagger::fallback("spare")).c_str(),
                "     0 ms  1 503\n"
                "     0 ms  1 is gone\n"
                "  1000 ms  2 200\n"
                "  1000 ms  2 is gone\n"
                "  1000 ms  value of 2\n");
    CHECK_TRACE(
        trace("attempts=1", "503", stagger::fallback([]() -> std::string {
                  throw std::runtime_error("no cache");
              }))
            .c_str(),
        "     0 ms  1 503\n"
        "     0 ms  1 is gone\n"
        "     0 ms  threw no cache\n");
}

TEST(uv_cpp, is_answered_by_its_fallback_when_all_of_a_round_have_failed)
{
    CHECK_TRACE(trace("attempts=1 hedge=100ms attempt-timeout=300ms",
                      "503@150 200@900",
                      stagger::fallback([](const stagger::gave_up &e) {
                          CHECK_U64(e.hedges(), 1);
                          return "spare";
                      }))
                    .c_str(),
                "     0 ms  1 503@150\n"
                "   100 ms  1+1 200@900\n"
                "   150 ms  1 is gone\n"
                "   400 ms  1+1 stops\n"
                "   400 ms  1+1 is gone\n"
                "   400 ms  value of spare\n");
}

TEST(uv_cpp, is_not_answered_by_its_fallback_where_it_is_cancelled)
{
    world w("503");
    stagger::cancel stop;
    stagger::options o = w.options();

    o.cancel = &stop;
    stop.set();
    tell(w, steady, o, stagger::fallback("spare"));
    w.run();
    CHECK_TRACE(w.trace,
                "     0 ms  gave up before the first attempt: it was "
                "cancelled (cancelled)\n");
}

/* Each one of many has a round of its own. */
TEST(uv_cpp, hedges_many_at_once)
{
    world w;
    unsigned done = 0;

    for (int i = 0; i < 300; i++)
        [](world &there, int which, unsigned &n) -> program {
            n += co_await retry(
                &there.loop, "hedge=100ms attempts=2 attempt-timeout=1s",
                there.options(),
                [&there, which](stagger::uv::attempt &a) -> task<unsigned> {
                    bool is_slow = which % 3 != 0 && a.hedge() == 0;
                    timer p(there, (is_slow ? 10000 : 7) * STG_MS);

                    a.on_abandon([&] { p.stop(); });
                    co_await p;
                    co_return 1;
                });
        }(w, i, done);
    w.run();
    CHECK_U64(done, 300);
}
