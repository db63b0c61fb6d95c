/* The C++ header, as C++17 and C++20, on virtual time. */
#include <stagger/stagger.hpp>

#include <atomic>
#include <cerrno>
#include <future>
#include <memory>
#include <thread>

#include <pthread.h>
#include <unistd.h>

#define _Noreturn [[noreturn]]
extern "C" {
#include "tests/adapters/story.h"
#include "tests/harness.h"
}
#undef _Noreturn

namespace
{

using namespace std::chrono_literals;

/* A clock of its own for each test; sleeping moves it. */
struct world : story {
    explicit world(const char *words = "") : story()
    {
        story_begin(this, words);
    }

    stagger::options options() const
    {
        stagger::options o;

        o.env = &env;
        return o;
    }
};

struct http_error : std::runtime_error {
    int status;
    explicit http_error(int s) : std::runtime_error("http"), status(s)
    {
    }
};

const char *const steady = "fixed base=100ms jitter=none attempts=3";

/* An attempt that throws what the script says, and returns its number. */
template <class Story> auto fetch(Story &w)
{
    return [&w](stagger::attempt &a) {
        stagger::outcome o = story_attempt(&w);

        if (!o.is_ok())
            throw stagger::failure(o);
        return a.number();
    };
}

/* The type of what f throws, by its sentence. */
template <class Error, class F> std::string thrown(F &&f)
{
    try {
        f();
    } catch (const Error &e) {
        return e.what();
    }
    harness_fail(__FILE__, __LINE__, "nothing was thrown");
}

} // namespace

TEST(cpp, returns_what_the_function_returns)
{
    CHECK_INT(stagger::retry(steady, [] { return 7; }), 7);
    auto moved = stagger::retry(
        steady, [](stagger::attempt &) { return std::make_unique<int>(8); });
    CHECK_INT(*moved, 8);
    int there = 1;
    int &reference = stagger::retry(steady, [&]() -> int & { return there; });
    CHECK(&reference == &there);
    stagger::retry(steady, [&] { there = 2; });
    CHECK_INT(there, 2);
}

TEST(cpp, repeats_a_function_that_throws)
{
    world w("503 refused 200");

    CHECK_U64(stagger::retry(steady, w.options(), fetch(w)), 3);
    CHECK_TRACE(w.trace,
                "     0 ms  503\n"
                "   100 ms  refused\n"
                "   200 ms  200\n");
}

TEST(cpp, reads_the_errno_of_a_system_error)
{
    std::error_code refused(ECONNREFUSED, std::system_category());
    std::error_code reset = std::make_error_code(std::errc::connection_reset);
    auto of = [](const auto &e) {
        return stagger::classify(std::make_exception_ptr(e)).name();
    };

    CHECK_STR(of(std::system_error(refused)).c_str(), "refused");
    CHECK_STR(of(std::system_error(reset)).c_str(), "reset");
    CHECK_STR(of(std::future_error(std::future_errc::no_state)).c_str(),
              "error");
    CHECK_STR(of(std::runtime_error("x")).c_str(), "error");
    CHECK_STR(of(7).c_str(), "error");
    CHECK(stagger::outcome(std::error_code()).is_ok());
    CHECK(stagger::classify(nullptr).is_ok());
}

/* A failure is never taken for a success. */
TEST(cpp, takes_no_exception_for_a_success)
{
    CHECK_STR(stagger::classify(
                  std::make_exception_ptr(std::system_error(std::error_code())))
                  .name()
                  .c_str(),
              "error");
    CHECK_STR(
        stagger::classify(std::make_exception_ptr(stagger::failure(stg_ok())))
            .name()
            .c_str(),
        "error");
}

TEST(cpp, reads_the_exception_that_another_is_nested_with)
{
    std::exception_ptr outer;

    try {
        try {
            throw stagger::failure(stg_answered(502));
        } catch (...) {
            std::throw_with_nested(std::runtime_error("outer"));
        }
    } catch (...) {
        outer = std::current_exception();
    }
    CHECK_STR(stagger::classify(outer).name().c_str(), "502");
}

TEST(cpp, does_not_repeat_what_nobody_knows)
{
    world w;
    int calls = 0;

    CHECK_STR(thrown<stagger::gave_up>([&] {
                  stagger::retry(steady, w.options(), [&] {
                      calls++;
                      throw std::logic_error("a bug");
                  });
              }).c_str(),
              "gave up after 1 attempt: error (permanent)");
    CHECK_INT(calls, 1);
}

TEST(cpp, gives_up_with_reason_history_and_the_last_exception)
{
    world w("503 +30ms reset 503");

    try {
        stagger::retry(steady, w.options(), fetch(w));
        CHECK(false);
    } catch (const stagger::gave_up &e) {
        CHECK_STR(e.what(),
                  "gave up after 3 attempts in 230 ms: 503 (attempts)");
        CHECK_INT(e.why(), STG_WHY_ATTEMPTS);
        CHECK_U64(e.attempts(), 3);
        CHECK(e.took() == 230ms);
        CHECK(e.waited() == 200ms);
        CHECK_STR(e.outcome().cause().c_str(), "HTTP_503");
        CHECK_U64(e.history().size(), 3);
        CHECK_U64(e.history()[1].number, 2);
        CHECK_STR(e.history()[1].outcome.name().c_str(), "reset");
        CHECK_STR(e.history()[1].what.c_str(), "CONNECTION_RESET");
        CHECK(e.history()[1].waited == 100ms);
        CHECK(e.history()[2].waited == 0ms);
        CHECK_STR(thrown<stagger::failure>([&] {
                      std::rethrow_if_nested(e);
                  }).c_str(),
                  "HTTP_503");
        CHECK_STR(thrown<stagger::failure>([&] { e.rethrow_last(); }).c_str(),
                  "HTTP_503");
    }
}

TEST(cpp, remembers_the_last_ten_failures)
{
    world w;

    try {
        stagger::retry("fixed attempts=25 base=1ms", w.options(), [](auto &a) {
            throw stagger::failure(stg_answered(503),
                                   std::to_string(a.number()));
        });
    } catch (const stagger::gave_up &e) {
        CHECK_U64(e.attempts(), 25);
        CHECK_U64(e.history().size(), 10);
        CHECK_STR(e.history()[0].what.c_str(), "16");
        CHECK_STR(e.history()[9].what.c_str(), "25");
        return;
    }
    CHECK(false);
}

TEST(cpp, throws_the_last_exception_itself_where_asked_to)
{
    world w;
    stagger::options o = w.options();

    o.rethrow_last = true;
    o.classify = [](const std::exception_ptr &) { return stg_answered(503); };
    CHECK_STR(thrown<http_error>([&] {
                  stagger::retry(steady, o, [] { throw http_error(1); });
              }).c_str(),
              "http");
    CHECK_U64(w.now, 200 * STG_MS);
}

TEST(cpp, is_answered_by_its_fallback_when_it_gives_up)
{
    world w("503 503 503");
    stagger::options o = w.options();
    std::string said;

    o.hook = [&](const stg_event &e) { w.hook.on(w.hook.ctx, &e); };
    std::uint32_t got = stagger::retry(
        steady, o, fetch(w), stagger::fallback([&](const stagger::gave_up &e) {
            said = e.what();
            CHECK_INT(e.history().size(), 3);
            CHECK(e.last() != nullptr);
            return 70u + e.attempts();
        }));

    CHECK_INT(got, 73);
    CHECK_STR(said.c_str(),
              "gave up after 3 attempts in 200 ms: 503 (attempts)");
    CHECK(strstr(w.trace, "fallback, 503: give up (attempts)") != NULL);
}

/* A value, a function that is told nothing, a reference, or nothing at all;
 * beside a classifier of values, on a peer, and without options. */
TEST(cpp, is_answered_by_a_fallback_of_any_kind)
{
    stagger::peer shared("fixed base=0 attempts=2 budget=tokens:9:1/s");
    auto bad = [] { return 4; };
    auto classify = [](int value) { return value == 4; };
    int spare = 5;
    bool was_asked = false;
    const stagger::fallback seven(7);

    CHECK_INT(stagger::retry("attempts=1", bad, classify, stagger::fallback(6)),
              6);
    CHECK_INT(stagger::retry(shared, bad, classify, seven), 7);
    CHECK_INT(stagger::retry(shared, stagger::options(), bad, classify,
                             stagger::fallback([] { return 8; })),
              8);
    int &there = stagger::retry(
        "attempts=1", []() -> int & { throw 1; },
        stagger::fallback([&]() -> int & { return spare; }));
    CHECK(&there == &spare);
    stagger::retry(
        "attempts=1", [] { throw 1; },
        stagger::fallback([&] { was_asked = true; }));
    CHECK(was_asked);
    CHECK_INT(stagger::retry(
                  "attempts=1", [] { return 9; }, seven),
              9);
}

TEST(cpp, has_no_fallback_for_what_is_cancelled_wrong_or_thrown_by_it)
{
    world w("503");
    stagger::options o = w.options();
    stagger::cancel stop;
    const stagger::fallback seven(7);
    auto bad = []() -> int { throw stagger::failure(stg_answered(503)); };

    o.cancel = &stop;
    stop.set();
    CHECK_STR(thrown<stagger::gave_up>([&] {
                  stagger::retry(steady, o, bad, seven);
              }).c_str(),
              "gave up before the first attempt: it was cancelled (cancelled)");
    (void)thrown<std::invalid_argument>(
        [&] { stagger::retry("budget=aws", bad, seven); });
    CHECK_STR(thrown<std::runtime_error>([&] {
                  stagger::retry("attempts=1", bad,
                                 stagger::fallback([]() -> int {
                                     throw std::runtime_error("no cache");
                                 }));
              }).c_str(),
              "no cache");
}

TEST(cpp, asks_the_classifier_that_takes_the_exception)
{
    world w;
    stagger::options o = w.options();
    int calls = 0;

    o.classify = stagger::classifier(
        [](const http_error &e) { return stg_answered(e.status); },
        [](const std::logic_error &) { return true; },
        [](const stagger::failure &) { return false; });
    stagger::retry("attempts=9", o, [&] {
        switch (++calls) {
        case 1:
            throw http_error(503);
        case 2:
            throw std::out_of_range("again");
        case 3: // none takes it
            throw std::system_error(ECONNRESET, std::generic_category());
        }
    });
    CHECK_INT(calls, 4);
    CHECK_STR(thrown<stagger::gave_up>([&] {
                  stagger::retry("attempts=9", o, [] {
                      throw stagger::failure(stg_answered(503));
                  });
              }).c_str(),
              "gave up after 1 attempt: 503 (permanent)");
    CHECK_STR(thrown<stagger::gave_up>([&] {
                  stagger::retry("attempts=9", o,
                                 [] { throw http_error(200); });
              }).c_str(),
              "gave up after 1 attempt: error (permanent)");
}

TEST(cpp, gives_up_with_what_a_classifier_throws)
{
    world w;
    stagger::options o = w.options();

    o.classify = [](const std::exception_ptr &) -> stagger::outcome {
        throw std::domain_error("the classifier");
    };
    try {
        stagger::retry(steady, o, [] { throw http_error(503); });
        CHECK(false);
    } catch (const stagger::gave_up &e) {
        CHECK_U64(e.attempts(), 1);
        CHECK_STR(thrown<std::domain_error>([&] { e.rethrow_last(); }).c_str(),
                  "the classifier");
    }
}

TEST(cpp, waits_as_long_as_the_exception_says)
{
    struct busy : std::system_error, stagger::retry_after {
        busy()
            : std::system_error(ETIMEDOUT, std::generic_category()),
              stagger::retry_after(2s)
        {
        }
    };
    world w;
    stagger::options o = w.options();

    stagger::retry(steady, o, [&](stagger::attempt &a) {
        if (a.number() == 1)
            throw busy();
    });
    CHECK_U64(w.now, 2 * STG_S);
    o.classify =
        stagger::classifier([](const busy &) { return stg_answered(503); });
    stagger::retry(steady, o, [&](stagger::attempt &a) {
        if (a.number() == 1)
            throw busy();
    });
    CHECK_U64(w.now, 4 * STG_S);
}

TEST(cpp, has_a_value_judged)
{
    world w;
    int state = 0;
    auto next = [&] { return ++state; };

    CHECK_INT(
        stagger::retry(steady, w.options(), next, [](int s) { return s < 3; }),
        3);
    CHECK_U64(w.now, 200 * STG_MS);
    CHECK_STR(thrown<stagger::gave_up>([&] {
                  stagger::retry(steady, w.options(), next,
                                 [](int) { return true; });
              }).c_str(),
              "gave up after 3 attempts in 200 ms: transient (attempts)");
    CHECK_STR(thrown<stagger::gave_up>([&] {
                  stagger::retry(steady, w.options(), next,
                                 [](int) { return stg_answered(404); });
              }).c_str(),
              "gave up after 1 attempt: 404 (permanent)");

    stagger::options o = w.options();
    o.rethrow_last = true; // there is none: the value is what there is
    state = 0;
    CHECK_INT(stagger::retry(steady, o, next, [](int) { return true; }), 3);
}

TEST(cpp, reads_outcomes_and_error_codes_that_are_returned)
{
    world w("503 200");
    int calls = 0;

    CHECK(stagger::retry(steady, w.options(), [&] {
              return story_attempt(&w);
          }).fault == STG_FAULT_NONE);
    CHECK_U64(w.now, 100 * STG_MS);
    CHECK(!stagger::retry(steady, w.options(), [&] {
        return ++calls < 3 ? std::make_error_code(std::errc::connection_refused)
                           : std::error_code();
    }));
    CHECK_INT(calls, 3);
}

TEST(cpp, fails_an_attempt_that_says_so)
{
    world w;

    CHECK_INT(stagger::retry(steady, w.options(),
                             [](stagger::attempt &a) {
                                 if (a.number() < 3)
                                     a.fail(stg_answered(503));
                                 return a.number();
                             }),
              3);
}

TEST(cpp, tells_an_attempt_its_time)
{
    world w;
    stagger::options o = w.options();
    std::vector<stagger::nanoseconds> times;

    o.deadline = 1500ms;
    CHECK_STR(thrown<stagger::gave_up>([&] {
                  stagger::retry(
                      "fixed base=1s jitter=none attempt-timeout=1s attempts=9",
                      o, [&](stagger::attempt &a) {
                          times.push_back(a.timeout());
                          throw stagger::failure(stg_answered(503));
                      });
              }).c_str(),
              "gave up after 2 attempts in 1 s: 503 (deadline)");
    CHECK_U64(times.size(), 2);
    CHECK(times[0] == 1s);
    CHECK(times[1] == 500ms);
    stagger::retry("deadline=none", [](stagger::attempt &a) {
        CHECK(a.timeout() == stagger::nanoseconds::max());
    });
}

TEST(cpp, makes_no_attempt_after_a_deadline_that_has_passed)
{
    world w("503");
    stagger::options o = w.options();

    w.now = STG_S;
    o.deadline = -5s;
    CHECK_STR(thrown<stagger::gave_up>([&] {
                  stagger::retry(steady, o, fetch(w));
              }).c_str(),
              "gave up before the first attempt: the next attempt would come "
              "too late (deadline)");
}

TEST(cpp, has_one_key_for_all_attempts)
{
    world w("503 200");
    stagger::options o = w.options();

    o.method = "POST";
    CHECK_STR(thrown<stagger::gave_up>([&] {
                  stagger::retry(steady, o, fetch(w));
              }).c_str(),
              "gave up after 1 attempt: 503 (not-idempotent)");
    story_begin(&w, "503 200");
    o.key = stagger::new_key();
    CHECK_U64(o.key.size(), 36);
    CHECK(o.key != stagger::new_key());
    stagger::retry(steady, o, [&](stagger::attempt &a) {
        CHECK(a.key() == o.key);
        return story_attempt(&w);
    });
    CHECK_U64(w.attempts, 2);
}

TEST(cpp, refuses_a_policy_with_the_librarys_sentence)
{
    CHECK_STR(thrown<std::invalid_argument>(
                  [] { stagger::policy p("exponential atempts=4"); })
                  .substr(0, 12)
                  .c_str(),
              "policy:1:13:");
    CHECK(!thrown<std::invalid_argument>([] {
               stagger::policy p(static_cast<const char *>(nullptr));
           }).empty());
    CHECK(!thrown<std::invalid_argument>([] {
               stagger::policy p{stg_policy{}};
           }).empty());
    CHECK(!thrown<std::runtime_error>([] {
               stagger::policy::load("/nowhere/policies", "a");
           }).empty());
    CHECK_STR(stagger::policy("fixed base=1s").text().c_str(),
              stagger::policy(std::string("base=1s fixed")).text().c_str());
}

TEST(cpp, loads_a_policy_by_its_name)
{
    CHECK_STR(stagger::policy::load(EXAMPLES "/policies.conf", "database")
                  .text()
                  .c_str(),
              stagger::policy("backend deadline=10s").text().c_str());
    CHECK(!thrown<std::runtime_error>([] {
               stagger::policy::load(EXAMPLES "/policies.conf", "nobody");
           }).empty());
    CHECK(!thrown<std::invalid_argument>([] {
               stagger::policy::load(EXAMPLES "/call.c", "database");
           }).empty());
}

TEST(cpp, shares_a_peer)
{
    world w;
    stagger::peer peer("fixed base=1ms attempts=9 budget=tokens:3:0.001/s");
    int calls = 0;
    auto fail = [&] {
        calls++;
        throw stagger::failure(stg_answered(503));
    };

    CHECK_STR(thrown<stagger::gave_up>(
                  [&] { stagger::retry(peer, w.options(), fail); })
                  .substr(0, 21)
                  .c_str(),
              "gave up after 4 attem");
    CHECK_STR(thrown<stagger::gave_up>([&] {
                  stagger::options o = w.options();

                  o.peer = &peer;
                  stagger::retry(peer.policy(), o, fail);
              }).c_str(),
              "gave up after 1 attempt: 503 (budget)");
    CHECK_INT(calls, 5);
    CHECK_INT(stagger::retry(peer, [] { return 3; }), 3);
}

TEST(cpp, makes_no_attempt_while_the_breaker_is_open)
{
    stagger::peer peer("attempts=1 breaker=1:1h");
    int calls = 0;
    auto fail = [&] {
        calls++;
        throw stagger::failure(stg_answered(503));
    };

    CHECK_INT(peer.breaker(), STG_BREAKER_CLOSED);
    thrown<stagger::gave_up>([&] { stagger::retry(peer, fail); });
    CHECK_INT(peer.breaker(), STG_BREAKER_OPEN);
    try {
        stagger::retry(peer, fail);
        CHECK(false);
    } catch (const stagger::gave_up &e) {
        CHECK_INT(e.why(), STG_WHY_CIRCUIT_OPEN);
        CHECK_STR(e.outcome().name().c_str(), "circuit-open");
        CHECK(e.last() == nullptr);
        e.rethrow_last(); // there is none
    }
    CHECK_INT(calls, 1);
}

TEST(cpp, refuses_a_call_that_is_wrong)
{
    CHECK(!thrown<std::invalid_argument>([] {
               stagger::retry("backend", [] { return 1; });
           }).empty());
}

TEST(cpp, is_cancelled_in_a_wait)
{
    world w("503 cancel 503 200");
    stagger::cancel stop;
    stagger::options o = w.options();

    o.cancel = &stop;
    CHECK_STR(thrown<stagger::gave_up>([&] {
                  stagger::retry(steady, o, [&] {
                      if (w.attempts == 1)
                          stop.set();
                      return story_attempt(&w);
                  });
              }).c_str(),
              "gave up after 2 attempts in 100 ms: 503 (cancelled)");
    CHECK(stop.is_set());
}

#ifdef __cpp_lib_jthread
TEST(cpp, is_stopped_by_a_token)
{
    std::atomic<bool> is_waiting = false;
    std::string sentence;
    std::jthread thread([&](std::stop_token token) {
        stagger::stop_cancel stop(token);
        stagger::options o;

        o.cancel = &stop;
        sentence = thrown<stagger::gave_up>([&] {
            stagger::retry("fixed base=1h deadline=none", o, [&] {
                is_waiting = true;
                throw stagger::failure(stg_answered(503));
            });
        });
    });

    while (!is_waiting)
        std::this_thread::yield();
    thread.request_stop();
    thread.join();
    CHECK_STR(sentence.substr(0, 21).c_str(), "gave up after 1 attem");

    std::stop_source source;
    source.request_stop();
    stagger::stop_cancel late(source.get_token());
    CHECK(late.is_set());
}
#endif

TEST(cpp, leaves_an_inner_calls_retries_to_the_outer_one)
{
    world w;
    int calls = 0;

    CHECK_STR(thrown<stagger::gave_up>([&] {
                  stagger::retry(steady, w.options(), [&] {
                      stagger::retry(steady, w.options(), [&] {
                          calls++;
                          throw stagger::failure(stg_answered(503));
                      });
                  });
              }).c_str(),
              "gave up after 3 attempts in 400 ms: 503 (attempts)");
    CHECK_INT(calls, 1 + 1 + 3); // the last time nobody else would
    CHECK(stg_call_current() == nullptr);
}

TEST(cpp, tells_a_hook_what_happens)
{
    world w("503 200");
    stagger::options o = w.options();
    std::string kinds;

    o.hook = [&](const stg_event &e) { kinds += "ade"[e.kind]; };
    stagger::retry(steady, o, fetch(w));
    CHECK_STR(kinds.c_str(), "adade");
}

/* A thread that is cancelled in an attempt unwinds through it. */
TEST(cpp, lets_a_cancelled_thread_go)
{
    pthread_t thread;
    void *result = nullptr;
    static std::atomic<bool> is_inside;
    static int calls;

    is_inside = false;
    calls = 0;
    CHECK(pthread_create(
              &thread, nullptr,
              [](void *) -> void * {
                  stagger::retry("retry=any,error attempts=3 base=0", [] {
                      calls++;
                      is_inside = true;
                      for (;;)
                          pause();
                  });
                  return nullptr;
              },
              nullptr) == 0);
    while (!is_inside)
        std::this_thread::yield();
    CHECK(pthread_cancel(thread) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
    CHECK_INT(calls, 1);
}

TEST(cpp, converts_times_without_wrapping)
{
    CHECK_U64(stagger::to_ns(-1s), 0);
    CHECK_U64(stagger::to_ns(2s), 2 * STG_S);
    CHECK(stagger::from_ns(STG_NEVER) == stagger::nanoseconds::max());
    CHECK(stagger::from_ns(STG_DAY) == 24h);
}
