/* uv.hpp - the retry on a libuv loop in C++20: co_await, and nothing blocks.
 *
 *     task<std::string> stock(uv_loop_t *loop)
 *     {
 *         co_return co_await stagger::uv::retry(
 *             loop, policy,
 *             [&](stagger::uv::attempt &a) { return get(loop, a); });
 *     }
 *
 * get() returns anything that can be awaited: a task of yours, an awaiter. What
 * it comes to, a value or an exception, is read as in stagger.hpp. All of it is
 * on the loop's thread. Link libstagger-uv.
 *
 * With hedges in the policy (hedge=100ms, see hedge.h) the function is called
 * again while what it returned before is still awaited: nothing that belongs to
 * one attempt may be kept for all. The first good result is the call's; the
 * others are stopped (attempt::on_abandon()), and the call goes on when they
 * have ended. What they come to then is dropped. */
#ifndef STAGGER_UV_HPP
#define STAGGER_UV_HPP

#if __cplusplus < 202002L
#error "stagger/uv.hpp needs C++20"
#endif

#include <coroutine>
#include <new>

#include <stagger/stagger.hpp>
#include <stagger/uv.h>

namespace stagger::uv
{

/* An attempt under way. It ends with what is awaited, and a call goes on behind
 * it only then: what its function refers to lives at least as long. */
class attempt : public stagger::attempt
{
  public:
    using stagger::attempt::attempt;

    /* Stops what is awaited, so that it ends: called when the attempt's time
     * is over, another one of its round has won, or the call is cancelled.
     * Without it the next attempt begins all the same, but a call that has
     * ended waits for this one to end. */
    void on_abandon(std::function<void()> stop)
    {
        stop_ = std::move(stop);
    }

    /* The attempt may end in it. */
    void abandon()
    {
        if (auto stop = std::exchange(stop_, nullptr))
            stop();
    }

  private:
    std::function<void()> stop_;
};

namespace detail
{

using namespace stagger::detail;

template <class A> decltype(auto) awaiter_of(A &&a)
{
    if constexpr (requires { static_cast<A &&>(a).operator co_await(); })
        return static_cast<A &&>(a).operator co_await();
    else if constexpr (requires { operator co_await(static_cast<A &&>(a)); })
        return operator co_await(static_cast<A &&>(a));
    else
        return static_cast<A &&>(a);
}

template <class F>
using awaited_by =
    decltype(invoke(std::declval<F &>(), std::declval<attempt &>()));
template <class F>
using value_of =
    decltype(awaiter_of(std::declval<awaited_by<F>>()).await_resume());

/* A coroutine that nobody waits for. False: there was no memory for it. */
struct detached {
    bool has_begun;

    struct promise_type {
        static void *operator new(std::size_t size) noexcept
        {
            return ::operator new(size, std::nothrow);
        }
        static void operator delete(void *frame) noexcept
        {
            ::operator delete(frame);
        }
        static detached get_return_object_on_allocation_failure() noexcept
        {
            return {false};
        }
        detached get_return_object() noexcept
        {
            return {true};
        }
        std::suspend_never initial_suspend() noexcept
        {
            return {};
        }
        std::suspend_never final_suspend() noexcept
        {
            return {};
        }
        void return_void() noexcept
        {
        }
        void unhandled_exception() noexcept
        {
            std::terminate();
        }
    };
};

} // namespace detail

/* The result of retry(): to be awaited, once. The coroutine that awaits it is
 * not destroyed before it goes on. */
template <class F, class ClassifyValue, class Fallback>
class [[nodiscard]] operation
{
    using value_type = detail::value_of<F>;
    static constexpr bool can_fall_back = detail::is_fallback<Fallback>::value;

  public:
    operation(uv_loop_t *loop, const stagger::policy &p, const options &o,
              peer *with_peer, F f, ClassifyValue classify_value,
              Fallback other)
        : loop_(loop), policy_(p), options_(o), peer_(with_peer),
          f_(std::move(f)), classify_value_(std::move(classify_value)),
          fallback_(std::move(other)), record_(options_)
    {
    }

    operation(const operation &) = delete;
    operation &operator=(const operation &) = delete;

    bool await_ready() const noexcept
    {
        return false;
    }

    bool await_suspend(std::coroutine_handle<> waiter)
    {
        stg_with with = record_.with(peer_);

        waiter_ = waiter;
        op_.data = this;
        op_.abandon = abandon;
        op_.hedge = hedge;
        with.fallback = can_fall_back ? &spare_ : nullptr;
        if (stg_uv_retry(loop_, &op_, policy_.get(), &with, start, done) ==
            STG_OK)
            return true;
        report_ = op_.report;
        return false;
    }

    value_type await_resume()
    {
        if (unanswered_ != nullptr)
            std::rethrow_exception(unanswered_);
        if (report_.next != STG_DONE && !report_.fell_back)
            record_.give_up(report_, slot_.is_full());
        return slot_.take();
    }

  private:
    static operation &of(stg_uv *op) noexcept
    {
        return *static_cast<operation *>(op->data);
    }

    static void start(stg_uv *op, std::uint32_t number)
    {
        operation &self = of(op);

        self.record_.begin();
        self.slot_ = {};
        self.begin(number, 0);
    }

    static void hedge(stg_uv *op, std::uint32_t number)
    {
        of(op).begin(number, op->op.hedge.made);
    }

    void begin(std::uint32_t number, std::uint32_t hedge)
    {
        if (!make(number, hedge).has_begun)
            stg_uv_report(&op_, number, stg_failed(STG_FAULT_NO_BUFFERS));
    }

    /* One attempt, from its begin to its end. Where it is the last to end, the
     * waiter goes on and may destroy this: nothing of the frame is left then
     * that refers to it. */
    detail::detached make(std::uint32_t number, std::uint32_t hedge)
    {
        running_++;
        {
            attempt a(&op_.op.retry, options_, hedge);
            detail::slot<value_type> value;
            std::exception_ptr error;
            outcome o;

            current_[hedge] = {&a, number};
            try {
                // Both by name: gcc 12 copies what a function returns by
                // reference.
                auto &&awaited = detail::invoke(f_, a);
                auto &&awaiter = detail::awaiter_of(
                    std::forward<decltype(awaited)>(awaited));

                if constexpr (std::is_void_v<value_type>) {
                    co_await awaiter;
                    value.fill([] {});
                } else {
                    decltype(auto) v = co_await awaiter;
                    value.fill([&]() -> value_type {
                        return static_cast<value_type &&>(v);
                    });
                }
                o = detail::verdict(a, value, classify_value_);
            } catch (...) {
                error = std::current_exception();
            }
            if (current_[hedge].a == &a)
                end(a, value, std::move(error), o);
        }
        running_--;
        go_on();
    }

    /* Ends an attempt that was not abandoned, with its value or its error. */
    void end(const attempt &a, detail::slot<value_type> &value,
             std::exception_ptr error, const outcome &o)
    {
        std::uint32_t number = std::exchange(current_[a.hedge()], {}).number;

        slot_ = std::move(value);
        stg_uv_report(&op_, number,
                      error != nullptr ? record_.fail(a, std::move(error), {})
                                       : record_.note(a, o));
    }

    /* The outcome of an abandoned attempt is dropped. The attempt was too late,
     * if the operation goes on with it; else another one has won, or the call
     * is cancelled. */
    static void abandon(stg_uv *op, std::uint32_t number)
    {
        operation &self = of(op);
        const cancel *c = self.options_.cancel;
        attempt *late = nullptr;

        for (under_way &each : self.current_)
            if (each.number == number)
                late = std::exchange(each, {}).a;
        if (late == nullptr)
            return;
        if (op->op.decision.next == STG_GO && (c == nullptr || !c->is_set())) {
            self.slot_ = {};
            self.record_.fail(*late, nullptr, stg_failed(STG_FAULT_TIMEOUT));
        }
        late->abandon();
    }

    static bool answer(void *self, const stg_report *report)
    {
        return static_cast<operation *>(self)->fall_back(*report);
    }

    bool fall_back([[maybe_unused]] const stg_report &report)
    {
        if constexpr (can_fall_back)
            unanswered_ = detail::fill_by(fallback_, slot_, record_, report);
        return unanswered_ == nullptr;
    }

    static void done(stg_uv *op, const stg_report *report)
    {
        operation &self = of(op);

        self.report_ = *report;
        self.is_done_ = true;
        self.go_on();
    }

    /* The last use of this, where it resumes. */
    void go_on()
    {
        if (is_done_ && running_ == 0)
            waiter_.resume();
    }

    uv_loop_t *loop_;
    stagger::policy policy_;
    options options_;
    peer *peer_;
    F f_;
    ClassifyValue classify_value_;
    Fallback fallback_;
    detail::record record_;
    detail::slot<value_type> slot_;
    stg_uv op_{};
    stg_report report_{};
    std::coroutine_handle<> waiter_;
    std::exception_ptr unanswered_; // thrown by the fallback
    stg_fallback spare_{answer, this};
    struct under_way {
        attempt *a = nullptr; // nullptr: abandoned, or there is none
        std::uint32_t number = 0;
    } current_[1 + STG_HEDGES_MAX]; // of the round, by attempt::hedge()
    unsigned running_ = 0;
    bool is_done_ = false;
};

namespace detail
{

/* A fallback may stand in the place of the classifier of values. */
template <class F, class ClassifyValue, class Fallback>
auto operate(uv_loop_t *loop, const policy &p, const options &o,
             peer *with_peer, F f, ClassifyValue classify_value, Fallback other)
{
    if constexpr (is_fallback<ClassifyValue>::value)
        return operation<F, natural, ClassifyValue>(
            loop, p, o, with_peer, std::move(f), {}, std::move(classify_value));
    else
        return operation<F, ClassifyValue, Fallback>(
            loop, p, o, with_peer, std::move(f), std::move(classify_value),
            std::move(other));
}

} // namespace detail

/* Calls f until what it returns, awaited, succeeds, or the policy gives up. To
 * be awaited on the loop's thread; begins then. Everything else is as
 * stagger::retry() has it, a stagger::fallback included (its function returns
 * the value, and is not awaited); attempts are ended when their time is over
 * (attempt::on_abandon()). Policy and options are copied. */
template <class F, class ClassifyValue = detail::natural,
          class Fallback = detail::no_fallback>
auto retry(uv_loop_t *loop, const policy &p, const options &o, F f,
           ClassifyValue classify_value = {}, Fallback other = {})
{
    return detail::operate(loop, p, o, nullptr, std::move(f),
                           std::move(classify_value), std::move(other));
}

template <class F, class ClassifyValue = detail::natural,
          class Fallback = detail::no_fallback>
requires(!std::is_same_v<F, options>) auto retry(
    uv_loop_t *loop, const policy &p, F f, ClassifyValue classify_value = {},
    Fallback other = {})
{
    return detail::operate(loop, p, {}, nullptr, std::move(f),
                           std::move(classify_value), std::move(other));
}

/* By the policy of a peer, and on it. */
template <class F, class ClassifyValue = detail::natural,
          class Fallback = detail::no_fallback>
auto retry(uv_loop_t *loop, peer &p, const options &o, F f,
           ClassifyValue classify_value = {}, Fallback other = {})
{
    return detail::operate(loop, p.policy(), o, &p, std::move(f),
                           std::move(classify_value), std::move(other));
}

template <class F, class ClassifyValue = detail::natural,
          class Fallback = detail::no_fallback>
requires(!std::is_same_v<F, options>) auto retry(
    uv_loop_t *loop, peer &p, F f, ClassifyValue classify_value = {},
    Fallback other = {})
{
    return detail::operate(loop, p.policy(), {}, &p, std::move(f),
                           std::move(classify_value), std::move(other));
}

} // namespace stagger::uv

#endif
