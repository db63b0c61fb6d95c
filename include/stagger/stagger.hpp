/* stagger.hpp - the retry in C++17: a function is called until it succeeds or
 * the policy gives up, and the exceptions that it throws are the outcomes.
 *
 *     stagger::policy policy("interactive attempts=5 attempt-timeout=2s");
 *
 *     auto body = stagger::retry(policy, [&](stagger::attempt &a) {
 *         return fetch(url, a.timeout());
 *     });
 *
 * Blocks, as stg_call() does, which decides: this header brings what C lacks,
 * exceptions, values and std::chrono. Nothing here but a peer and a cancel is
 * shared by threads. Link libstagger. docs/cpp.md is the guide. */
#ifndef STAGGER_STAGGER_HPP
#define STAGGER_STAGGER_HPP

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef __GLIBCXX__
#include <cxxabi.h> // abi::__forced_unwind: pthread_cancel()
#endif
#if __cplusplus >= 202002L && __has_include(<stop_token>)
#include <stop_token>
#endif

#include <stagger/stagger.h>

namespace stagger
{

using std::chrono::nanoseconds;

/* -- time: stg_ns and std::chrono */

/* A negative duration is 0. */
inline stg_ns to_ns(nanoseconds d) noexcept
{
    return d.count() > 0 ? static_cast<stg_ns>(d.count()) : 0;
}

/* A time longer than nanoseconds can say, STG_NEVER above all, is
 * nanoseconds::max(). */
inline nanoseconds from_ns(stg_ns ns) noexcept
{
    return ns < to_ns(nanoseconds::max())
               ? nanoseconds(static_cast<nanoseconds::rep>(ns))
               : nanoseconds::max();
}

/* -- outcomes */

/* An stg_outcome with its names. All functions of outcome.h make one:
 * `stagger::outcome o = stg_answered(503);`. */
struct outcome : stg_outcome {
    outcome(const stg_outcome &o = stg_ok()) noexcept : stg_outcome(o)
    {
    }

    /* An error code of the system, of errno, or one that compares equal to an
     * errno; any other is STG_FAULT_ERROR, and 0 is success. */
    outcome(const std::error_code &e) noexcept : stg_outcome(stg_ok())
    {
        std::error_condition c = e.default_error_condition();

        if (!e)
            return;
        *static_cast<stg_outcome *>(this) =
            e.category() == std::system_category() ? stg_failed_errno(e.value())
            : c.category() == std::generic_category()
                ? stg_failed_errno(c.value())
                : stg_failed(STG_FAULT_ERROR);
    }

    bool is_ok() const noexcept
    {
        return fault == STG_FAULT_NONE;
    }

    /* "503", "refused", "sqlstate:23505" ... */
    std::string name() const
    {
        char text[STG_CAUSE_MAX];

        return stg_outcome_name(this, text);
    }

    /* "HTTP_503", "CONNECTION_REFUSED", "SQLSTATE_23505" ... */
    std::string cause() const
    {
        char text[STG_CAUSE_MAX];

        return stg_outcome_cause(this, text);
    }

    /* The same, and the next attempt comes no sooner than d from now. */
    outcome after(nanoseconds d) const noexcept
    {
        outcome o = *this;

        o.delay = to_ns(d);
        return o;
    }

    /* The same, and there is no next attempt, whatever the policy says. */
    outcome never() const noexcept
    {
        outcome o = *this;

        o.permanent = true;
        return o;
    }
};

/* An exception that says itself what it is: derive yours from it, too. */
class has_outcome
{
  public:
    virtual stagger::outcome outcome() const noexcept = 0;

  protected:
    has_outcome() = default;
    has_outcome(const has_outcome &) = default;
    has_outcome &operator=(const has_outcome &) = default;
    virtual ~has_outcome() = default;
};

/* An exception that says when to come back, whatever else it is. */
class retry_after
{
  public:
    explicit retry_after(nanoseconds d) noexcept : delay_(d)
    {
    }

    nanoseconds delay() const noexcept
    {
        return delay_;
    }

  private:
    nanoseconds delay_;
};

/* One that is ready to throw: `throw stagger::failure(stg_answered(503));`. */
class failure : public std::runtime_error, public has_outcome
{
  public:
    explicit failure(const stg_outcome &o)
        : std::runtime_error(stagger::outcome(o).cause()), outcome_(o)
    {
    }

    failure(const stg_outcome &o, const std::string &what)
        : std::runtime_error(what), outcome_(o)
    {
    }

    stagger::outcome outcome() const noexcept override
    {
        return outcome_;
    }

  private:
    stagger::outcome outcome_;
};

namespace detail
{

/* All that is read off an exception. Each look throws it again, which costs
 * time. */
struct seen {
    outcome of = stg_failed(STG_FAULT_ERROR);
    nanoseconds delay{0};
    std::string what = {};
};

inline seen look(const std::exception_ptr &error);

inline void read(seen &s, const std::exception &e)
{
    s.what = e.what();
    if (auto *h = dynamic_cast<const has_outcome *>(&e))
        s.of = h->outcome();
    else if (auto *c = dynamic_cast<const std::system_error *>(&e))
        s.of = c->code();
    else if (auto *n = dynamic_cast<const std::nested_exception *>(&e))
        s.of = n->nested_ptr() != nullptr ? look(n->nested_ptr()).of : s.of;
    if (auto *r = dynamic_cast<const retry_after *>(&e))
        s.delay = r->delay();
}

inline seen look(const std::exception_ptr &error)
{
    seen s;

    try {
        std::rethrow_exception(error);
    } catch (const std::exception &e) {
        read(s, e);
    } catch (const has_outcome &e) {
        s.of = e.outcome();
    } catch (...) {
    }
    if (s.of.is_ok())
        s.of = stg_failed(STG_FAULT_ERROR);
    return s;
}

/* A delay that the exception carries, where the outcome says none. */
inline outcome delayed(const outcome &o, const seen &s)
{
    return o.delay == 0 && s.delay.count() > 0 ? o.after(s.delay) : o;
}

} // namespace detail

/* The meaning of an exception without a classifier: what it says itself
 * (has_outcome), the errno of a std::system_error, that of an exception it is
 * nested with; else STG_FAULT_ERROR, which is retried where the policy has
 * retry=error. It may carry a retry_after besides. */
inline outcome classify(const std::exception_ptr &error)
{
    if (error == nullptr)
        return {};
    detail::seen s = detail::look(error);

    return detail::delayed(s.of, s);
}

/* A failure that may pass: what `true` means as an answer of a classifier,
 * of exceptions or of values. Policies call it `transient`, and retry it by
 * default. */
inline outcome again() noexcept
{
    return stg_failed(STG_FAULT_TRANSIENT);
}

namespace detail
{

/* true: try again; false: do not; or an outcome. */
inline outcome outcome_of(bool is_worth_it, const outcome &otherwise)
{
    return is_worth_it ? again() : otherwise.never();
}

inline outcome outcome_of(const outcome &o, const outcome &)
{
    return o.is_ok() ? outcome(stg_failed(STG_FAULT_ERROR)) : o;
}

template <class F> struct parameter : parameter<decltype(&F::operator())> {
};
template <class C, class R, class E> struct parameter<R (C::*)(E)> {
    using type = E;
};
template <class C, class R, class E> struct parameter<R (C::*)(E) const> {
    using type = E;
};
template <class R, class E> struct parameter<R (*)(E)> {
    using type = E;
};

inline outcome ask(const std::exception_ptr &, const seen &s)
{
    return s.of;
}

/* Asks the first whose parameter the exception is. */
template <class F, class... Others>
outcome ask(const std::exception_ptr &error, const seen &s, const F &f,
            const Others &...others)
{
    try {
        std::rethrow_exception(error);
    } catch (typename parameter<F>::type e) {
        return outcome_of(f(e), s.of);
    } catch (...) {
    }
    return ask(error, s, others...);
}

} // namespace detail

/* A classifier of functions, each for exceptions of its parameter's type, asked
 * in this order; what none of them takes is classify()'d.
 *
 *     o.classify = stagger::classifier(
 *         [](const http_error &e) { return stg_answered(e.status); },
 *         [](const parse_error &) { return false; });
 *
 * The functions answer an outcome, or whether another attempt is worth it. None
 * is generic (auto), for its parameter decides. */
template <class... F> auto classifier(F... f)
{
    return [f...](const std::exception_ptr &error) {
        detail::seen s = detail::look(error);

        return detail::delayed(detail::ask(error, s, f...), s);
    };
}

/* -- policies, and what calls of one remote share */

/* A policy out of a text, see docs/retry.md. To make one costs some
 * microseconds: keep it. */
class policy
{
  public:
    /* Throws std::invalid_argument with the place, what was found and what was
     * expected: "policy:1:13: ...". */
    policy(const char *text)
    {
        stg_error err{};

        if (stg_policy_parse(&policy_, text, &err) != STG_OK)
            throw std::invalid_argument(
                text == nullptr ? "policy: the text is NULL" : err.text);
    }

    policy(const std::string &text) : policy(text.c_str())
    {
    }

    policy(const stg_policy &p) : policy_(p)
    {
        stg_error err{};

        if (stg_policy_check(&p, &err) != STG_OK)
            throw std::invalid_argument(err.text);
    }

    /* The policy called name in a file of them (policies.h). Throws
     * std::invalid_argument for what is wrong in it, std::runtime_error where
     * there is no such file or name. */
    static policy load(const std::string &path, const std::string &name)
    {
        stg_policy p;
        stg_error err{};

        switch (stg_policy_load(&p, path.c_str(), name.c_str(), &err)) {
        case STG_OK:
            return p;
        case STG_INVALID:
            throw std::invalid_argument(err.text);
        default:
            throw std::runtime_error(err.text);
        }
    }

    /* The canonical text. */
    std::string text() const
    {
        char text[STG_POLICY_TEXT_MAX] = "";

        (void)stg_policy_print(&policy_, text);
        return text;
    }

    const stg_policy *get() const noexcept
    {
        return &policy_;
    }

  private:
    stg_policy policy_;
};

/* Budget, breaker, rate limit and bulkhead of one remote, and a policy that has
 * them. It outlives the calls that use it, and any number of threads may. */
class peer
{
  public:
    explicit peer(const stagger::policy &p) : policy_(p)
    {
        (void)stg_peer_init(&peer_, policy_.get()); // cannot fail: p is valid
    }

    peer(const peer &) = delete;
    peer &operator=(const peer &) = delete;

    const stagger::policy &policy() const noexcept
    {
        return policy_;
    }

    stg_breaker_state breaker() const noexcept
    {
        return stg_breaker_look(&peer_.breaker, stg_env_system()->now(nullptr),
                                nullptr);
    }

    stg_peer *get() noexcept
    {
        return &peer_;
    }

  private:
    stagger::policy policy_;
    stg_peer peer_;
};

/* Ends calls from another thread, or from a signal handler: a wait at once, an
 * attempt when it is over. It stays set, and outlives the calls. */
class cancel
{
  public:
    cancel() = default;
    cancel(const cancel &) = delete;
    cancel &operator=(const cancel &) = delete;

    void set() noexcept
    {
        stg_cancel_set(&cancel_);
    }

    bool is_set() const noexcept
    {
        return stg_cancel_is_set(&cancel_);
    }

    stg_cancel *get() noexcept
    {
        return &cancel_;
    }

  private:
    stg_cancel cancel_{};
};

#ifdef __cpp_lib_jthread
/* A cancel that a std::stop_token sets:
 *
 *     stagger::stop_cancel stop(token);
 *     o.cancel = &stop; */
class stop_cancel : public cancel
{
    struct setter {
        cancel *target;
        void operator()() const noexcept
        {
            target->set();
        }
    };

  public:
    explicit stop_cancel(std::stop_token token)
        : callback_(std::move(token), setter{this})
    {
    }

  private:
    std::stop_callback<setter> callback_;
};
#endif

/* -- one call */

/* All that is optional. What the pointers point to outlives the call. */
struct options {
    stagger::peer *peer = nullptr; /* needed by a policy with budget, breaker,
                                      rate or bulkhead, if the call is given
                                      none */
    stagger::cancel *cancel = nullptr;
    const char *method = nullptr; /* "POST"; nullptr: may be repeated. POST and
                                     PATCH need a key for it */
    std::string key = {};         /* idempotency key of all attempts; "": none.
                                     new_key() makes one */
    std::optional<nanoseconds> deadline = {}; /* from now, besides the
                                                 policy's */
    nanoseconds expected{0};   /* how long an attempt takes, for the deadline */
    bool rethrow_last = false; /* gives up with the last exception itself, or
                                  with the last value, not with gave_up */
    /* Reads an exception; see classifier(). Empty: stagger::classify(). */
    std::function<stagger::outcome(const std::exception_ptr &)> classify = {};
    /* Sees attempts, decisions and the end (event.h). Throws nothing. */
    std::function<void(const stg_event &)> hook = {};
    stg_budget *shared_budget = nullptr; /* asked after the peer's */
    const stg_retry *parent = nullptr; /* the call that this one is part of, on
                                          another thread */
    const stg_env *env = nullptr;      /* another clock, sleep and chance */
};

/* A new idempotency key: a UUID of version 7. */
inline std::string new_key()
{
    char text[STG_KEY_MAX];

    return stg_key_new(text);
}

/* An attempt that failed. */
struct failed_attempt {
    std::uint32_t number;     /* from 1 */
    stagger::outcome outcome; /* result of the attempt */
    std::string what;         /* of its exception; "" for any other */
    nanoseconds waited;       /* after it; 0 after the last */
    std::uint32_t hedge = 0;  /* which one of its round (attempt::hedge()) */
};

/* Thrown when the policy gives up, nested with the last exception, where there
 * is one: std::rethrow_if_nested(), or rethrow_last(). what() is the sentence:
 * "gave up after 3 attempts in 3.1 s: refused (attempts)". */
class gave_up : public std::runtime_error, public has_outcome
{
  public:
    gave_up(const stg_report &report, std::vector<failed_attempt> history,
            std::exception_ptr last)
        : std::runtime_error(sentence_of(report)),
          facts_(std::make_shared<const facts>(
              facts{report, std::move(history), std::move(last)}))
    {
    }

    stg_why why() const noexcept
    {
        return facts_->report.why;
    }

    std::uint32_t attempts() const noexcept
    {
        return facts_->report.attempts;
    }

    /* Made beside the attempts (stagger/uv.hpp). */
    std::uint32_t hedges() const noexcept
    {
        return facts_->report.hedges;
    }

    /* From the start to the end, and what of it was waits. */
    nanoseconds took() const noexcept
    {
        return from_ns(facts_->report.took);
    }

    nanoseconds waited() const noexcept
    {
        return from_ns(facts_->report.waited);
    }

    /* The last failure; what a call around this one takes it for. */
    stagger::outcome outcome() const noexcept override
    {
        const stg_outcome &last = facts_->report.last;

        return last.fault != STG_FAULT_NONE ? last
               : why() == STG_WHY_CIRCUIT_OPEN
                   ? stg_failed(STG_FAULT_CIRCUIT_OPEN)
                   : stg_failed(STG_FAULT_ERROR);
    }

    /* The attempts that failed, the last 10 of them. */
    const std::vector<failed_attempt> &history() const noexcept
    {
        return facts_->history;
    }

    /* The last exception; null where no attempt was made, or the last one
     * failed by a value. */
    std::exception_ptr last() const noexcept
    {
        return facts_->last;
    }

    /* Throws it, where there is one. */
    void rethrow_last() const
    {
        if (facts_->last != nullptr)
            std::rethrow_exception(facts_->last);
    }

    static std::string sentence_of(const stg_report &report)
    {
        char text[STG_REPORT_TEXT_MAX] = "";

        return stg_report_text(&report, text);
    }

  private:
    struct facts {
        stg_report report;
        std::vector<failed_attempt> history;
        std::exception_ptr last;
    };
    std::shared_ptr<const facts> facts_; // an exception's copy must not fail
};

namespace detail
{

constexpr std::size_t history_max = 10;

inline void tell(void *hook, const stg_event *event) noexcept
{
    (*static_cast<const std::function<void(const stg_event &)> *>(hook))(
        *event);
}

} // namespace detail

/* An answer for a call that has given up: a value, or a function that is told why
 * by a const gave_up &, or takes nothing; an exception of the function leaves
 * the call. The fallback is not asked about a call that was cancelled, or is
 * wrong.
 *
 *     stagger::retry(policy, fetch, stagger::fallback("none"s)); */
template <class T> struct fallback {
    explicit fallback(T v) : value(std::move(v))
    {
    }

    T value;
};

/* The attempt that is being made: what the function is told of it. */
class attempt
{
  public:
    attempt(const stg_retry *retry, const options &options,
            std::uint32_t hedge = 0) noexcept
        : retry_(retry), options_(options), number_(retry->attempts),
          hedge_(hedge)
    {
    }

    /* From 1. A hedge has the number of the attempt that it is beside. */
    std::uint32_t number() const noexcept
    {
        return number_;
    }

    /* Which hedge of that attempt it is, from 1; 0: it is none. A call that
     * blocks makes none. */
    std::uint32_t hedge() const noexcept
    {
        return hedge_;
    }

    /* How long it may take, from now: what is left of attempt-timeout and of
     * the deadline. nanoseconds::max(): no limit. Nothing ends the function
     * that takes longer: hand it on. */
    nanoseconds timeout() const noexcept
    {
        const stg_env *env =
            options_.env != nullptr && options_.env->now != nullptr
                ? options_.env
                : stg_env_system();

        return from_ns(stg_retry_timeout(retry_, env->now(env->ctx)));
    }

    /* That of the options, the same in all attempts. */
    const std::string &key() const noexcept
    {
        return options_.key;
    }

    /* Fails the attempt, whatever the function returns. The last word holds,
     * and a success takes it back. */
    void fail(const stagger::outcome &o) noexcept
    {
        said_ = o;
    }

    const stagger::outcome &said() const noexcept
    {
        return said_;
    }

    /* The parent of a call on another thread, or on a loop. */
    const stg_retry *get() const noexcept
    {
        return retry_;
    }

  private:
    const stg_retry *retry_;
    const options &options_;
    std::uint32_t number_, hedge_;
    stagger::outcome said_;
};

namespace detail
{

/* The failures of a call, whoever makes the attempts. */
class record
{
  public:
    explicit record(const options &o) : options_(o)
    {
    }

    stg_with with(stagger::peer *given)
    {
        stg_with w{};

        if (given == nullptr)
            given = options_.peer;
        w.peer = given == nullptr ? nullptr : given->get();
        w.shared_budget = options_.shared_budget;
        w.cancel =
            options_.cancel == nullptr ? nullptr : options_.cancel->get();
        w.hook = options_.hook ? &hook_ : nullptr;
        w.env = options_.env;
        w.parent = options_.parent;
        w.method = options_.method;
        w.has_key = !options_.key.empty();
        w.expected = to_ns(options_.expected);
        if (options_.deadline)
            w.deadline_at =
                stg_ns_max(1, stg_ns_add(now(), to_ns(*options_.deadline)));
        return w;
    }

    /* Whether there is nothing to tell the library. */
    bool is_plain(const stagger::peer *given) const noexcept
    {
        return &options_ == &none() && given == nullptr;
    }

    static const options &none()
    {
        static const options o;

        return o;
    }

    void begin() noexcept
    {
        if (!history_.empty())
            history_.back().waited = from_ns(stg_ns_sub(now(), failed_at_));
    }

    /* The attempt threw, or error is null and it failed by a value. */
    stg_outcome fail(const attempt &a, std::exception_ptr error,
                     outcome o) noexcept
    {
        try {
            seen s;

            if (error != nullptr) {
                s = look(error);
                o = options_.classify ? options_.classify(error)
                                      : delayed(s.of, s);
            }
            if (o.is_ok())
                o = stg_failed(STG_FAULT_ERROR);
            if (history_.size() == history_max)
                history_.erase(history_.begin());
            history_.push_back(
                {a.number(), o, std::move(s.what), nanoseconds(0), a.hedge()});
            last_ = std::move(error);
            failed_at_ = now();
        } catch (...) { // thrown by the classifier, or no memory
            last_ = std::current_exception();
            o = outcome(stg_failed(STG_FAULT_ERROR)).never();
        }
        return o;
    }

    /* It threw nothing, and came to o. */
    stg_outcome note(const attempt &a, const outcome &o) noexcept
    {
        return o.is_ok() ? stg_outcome(o) : fail(a, nullptr, o);
    }

    const options &given() const noexcept
    {
        return options_;
    }

    gave_up why(const stg_report &report) const
    {
        return {report, history_, last_};
    }

    /* The call did not succeed; returns where its last value is wanted. */
    void give_up(const stg_report &report, bool has_value)
    {
        if (report.why == STG_WHY_INVALID)
            throw std::invalid_argument(gave_up::sentence_of(report));
        if (options_.rethrow_last && last_ != nullptr)
            std::rethrow_exception(last_);
        if (options_.rethrow_last && has_value)
            return;
        throw_gave_up({report, std::move(history_), last_});
    }

  private:
    [[noreturn]] void throw_gave_up(gave_up g) const
    {
        if (last_ == nullptr)
            throw g;
        try {
            std::rethrow_exception(last_);
        } catch (...) {
            std::throw_with_nested(std::move(g));
        }
    }

    stg_ns now() const noexcept
    {
        const stg_env *env =
            options_.env != nullptr && options_.env->now != nullptr
                ? options_.env
                : stg_env_system();

        return env->now(env->ctx);
    }

    const options &options_;
    std::vector<failed_attempt> history_;
    std::exception_ptr last_;
    stg_ns failed_at_ = 0;
    stg_hook hook_{tell, const_cast<std::function<void(const stg_event &)> *>(
                             &options_.hook)};
};

/* The value of an attempt: any, a reference, or none. */
template <class T> struct slot {
    std::optional<T> value;
    template <class F> void fill(F &&f)
    {
        value.emplace(f());
    }
    bool is_full() const noexcept
    {
        return value.has_value();
    }
    T take()
    {
        return std::move(*value);
    }
};
template <class T> struct slot<T &> {
    T *value = nullptr;
    template <class F> void fill(F &&f)
    {
        value = &f();
    }
    bool is_full() const noexcept
    {
        return value != nullptr;
    }
    T &take() const noexcept
    {
        return *value;
    }
};
template <> struct slot<void> {
    bool is_filled = false;
    template <class F> void fill(F &&f)
    {
        f();
        is_filled = true;
    }
    bool is_full() const noexcept
    {
        return is_filled;
    }
    void take() const noexcept
    {
    }
};

/* No classifier of values: outcomes and error codes speak for themselves, all
 * else is good. */
struct natural {
    template <class T> outcome operator()(const T &value) const noexcept
    {
        if constexpr (std::is_convertible_v<const T &, outcome>)
            return value;
        else
            return {};
    }
};

/* A classifier of values answers whether the value is a failure, or what
 * outcome it is. */
inline outcome classified(bool is_failure)
{
    return is_failure ? again() : outcome();
}

inline outcome classified(const outcome &o)
{
    return o;
}

template <class F, class Attempt> decltype(auto) invoke(F &f, Attempt &a)
{
    if constexpr (std::is_invocable_v<F &, Attempt &>)
        return f(a);
    else
        return f();
}

/* The outcome of an attempt that threw nothing. */
template <class T, class ClassifyValue>
outcome verdict(const attempt &a, const slot<T> &returned,
                ClassifyValue &classify_value)
{
    if constexpr (!std::is_void_v<T>)
        if (a.said().is_ok())
            return classified(classify_value(std::as_const(*returned.value)));
    return a.said();
}

struct no_fallback {
};

template <class T> struct is_fallback : std::false_type {
};
template <class T> struct is_fallback<fallback<T>> : std::true_type {
};

/* Of a function that is told why the call gave up, of one that is not, or of a
 * value. */
template <class T, class Value>
T answer_of(Value &value, [[maybe_unused]] const gave_up &why)
{
    if constexpr (std::is_invocable_v<Value &, const gave_up &>)
        return value(why);
    else if constexpr (std::is_invocable_v<Value &>)
        return value();
    else
        return value;
}

/* The fallback's answer, instead of a value that was not good enough. Returns
 * null, or what it threw. */
template <class T, class Fallback>
std::exception_ptr fill_by(Fallback &other, slot<T> &answer, const record &r,
                           const stg_report &report)
{
    try {
        gave_up why = r.why(report);

        answer = {};
        answer.fill([&]() -> T { return answer_of<T>(other.value, why); });
        return nullptr;
#ifdef __GLIBCXX__
    } catch (abi::__forced_unwind &) {
        throw;
#endif
    } catch (...) {
        return std::current_exception();
    }
}

template <class F, class ClassifyValue, class Fallback> class call
{
    using value_type =
        decltype(invoke(std::declval<F &>(), std::declval<attempt &>()));
    static constexpr bool can_fall_back =
        is_fallback<std::remove_cv_t<Fallback>>::value;

  public:
    call(const options &o, F &f, ClassifyValue &classify_value, Fallback &other)
        : record_(o), f_(f), classify_value_(classify_value), fallback_(other)
    {
    }

    value_type run(const policy &p, peer *with_peer)
    {
        stg_report report;
        bool is_done;

        if (!can_fall_back && record_.is_plain(with_peer)) {
            is_done = stg_call(p.get(), nullptr, step, this, &report);
        } else {
            stg_with with = record_.with(with_peer);
            stg_fallback spare{answer, this};

            with.fallback = can_fall_back ? &spare : nullptr;
            is_done = stg_call(p.get(), &with, step, this, &report);
        }
        if (unanswered_ != nullptr)
            std::rethrow_exception(unanswered_);
        if (!is_done)
            record_.give_up(report, slot_.is_full());
        return slot_.take();
    }

  private:
    static bool answer(void *self, const stg_report *report)
    {
        return static_cast<call *>(self)->fall_back(*report);
    }

    bool fall_back([[maybe_unused]] const stg_report &report)
    {
        if constexpr (can_fall_back)
            unanswered_ = fill_by(fallback_, slot_, record_, report);
        return unanswered_ == nullptr;
    }

    static stg_outcome step(void *self)
    {
        return static_cast<call *>(self)->make();
    }

    /* The exception that unwinds a cancelled thread is a reference to nothing. */
    __attribute__((no_sanitize("null"))) stg_outcome make()
    {
        attempt a(stg_call_current(), record_.given());

        record_.begin();
        slot_ = {};
        try {
            slot_.fill([&]() -> value_type { return invoke(f_, a); });
            return record_.note(a, verdict(a, slot_, classify_value_));
#ifdef __GLIBCXX__
        } catch (abi::__forced_unwind &) {
            throw; // the thread is cancelled: that is no failure
#endif
        } catch (...) {
            return record_.fail(a, std::current_exception(), {});
        }
    }

    record record_;
    F &f_;
    ClassifyValue &classify_value_;
    Fallback &fallback_;
    slot<value_type> slot_;
    std::exception_ptr unanswered_; // thrown by the fallback
};

/* A fallback may stand in the place of the classifier of values. */
template <class F, class ClassifyValue, class Fallback>
decltype(auto) run(const policy &p, peer *with_peer, const options &o, F &f,
                   ClassifyValue &classify_value, Fallback &other)
{
    if constexpr (is_fallback<std::remove_cv_t<ClassifyValue>>::value) {
        natural none;

        return call<F, natural, ClassifyValue>(o, f, none, classify_value)
            .run(p, with_peer);
    } else {
        return call<F, ClassifyValue, Fallback>(o, f, classify_value, other)
            .run(p, with_peer);
    }
}

template <class F>
using if_function = std::enable_if_t<std::is_invocable_v<F &, attempt &> ||
                                     std::is_invocable_v<F &>>;

} // namespace detail

/* Calls f until it succeeds, or the policy gives up; returns what it returned.
 * f takes a stagger::attempt &, or nothing. An exception that it throws is a
 * failure, and what it returns a success, unless
 *
 *   - it is an stg_outcome or a std::error_code, which speak for themselves;
 *   - classify_value says otherwise: it answers true for a failure that
 *     is worth another attempt, or an outcome;
 *   - f has said so by attempt::fail().
 *
 * Throws gave_up, or what options.rethrow_last says, when the policy gives up,
 * unless a stagger::fallback, behind that or in its place, answers instead;
 * std::invalid_argument for a call that is wrong, such as a policy with a
 * budget and no peer. A call inside f, on its thread, is nested in this one. */
template <class F, class ClassifyValue = detail::natural,
          class Fallback = detail::no_fallback, class = detail::if_function<F>>
decltype(auto) retry(const policy &p, const options &o, F &&f,
                     ClassifyValue &&classify_value = {}, Fallback &&other = {})
{
    return detail::run(p, nullptr, o, f, classify_value, other);
}

template <class F, class ClassifyValue = detail::natural,
          class Fallback = detail::no_fallback, class = detail::if_function<F>>
decltype(auto) retry(const policy &p, F &&f,
                     ClassifyValue &&classify_value = {}, Fallback &&other = {})
{
    return retry(p, detail::record::none(), f, classify_value, other);
}

/* By the policy of a peer, and on it. */
template <class F, class ClassifyValue = detail::natural,
          class Fallback = detail::no_fallback, class = detail::if_function<F>>
decltype(auto) retry(peer &p, const options &o, F &&f,
                     ClassifyValue &&classify_value = {}, Fallback &&other = {})
{
    return detail::run(p.policy(), &p, o, f, classify_value, other);
}

template <class F, class ClassifyValue = detail::natural,
          class Fallback = detail::no_fallback, class = detail::if_function<F>>
decltype(auto) retry(peer &p, F &&f, ClassifyValue &&classify_value = {},
                     Fallback &&other = {})
{
    return retry(p, detail::record::none(), f, classify_value, other);
}

} // namespace stagger

#endif
