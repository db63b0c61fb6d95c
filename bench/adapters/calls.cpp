/* calls.cpp - what a call costs in C++, for bench/adapters.py.
 *
 * usage: calls bare|throw|value success|retry
 *
 * As calls.c. A failure is an exception, caught by hand for bare; for value it
 * is an outcome that is returned. */
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string_view>

#include <stagger/stagger.hpp>

namespace
{

unsigned calls, failures; // every how many calls one fails; 0: none

bool fails()
{
    return failures != 0 && ++calls % failures == 1;
}

int work()
{
    if (fails())
        throw std::system_error(ECONNREFUSED, std::generic_category());
    return 1;
}

int bare()
{
    for (;;) {
        try {
            return work();
        } catch (const std::system_error &) {
        }
    }
}

const stagger::policy policy("fixed base=0 attempts=4 deadline=none");

int by_exception()
{
    return stagger::retry(policy, work);
}

int by_value()
{
    return stagger::retry(policy, [] {
               return fails() ? stg_failed_errno(ECONNREFUSED) : stg_ok();
           }).fault == STG_FAULT_NONE;
}

double measure(int (*volatile f)(), unsigned count)
{
    auto began = std::chrono::steady_clock::now();
    unsigned sum = 0;

    for (unsigned i = 0; i < count; i++)
        sum += static_cast<unsigned>(f());
    if (sum != count)
        std::terminate();
    return std::chrono::duration<double, std::nano>(
               std::chrono::steady_clock::now() - began)
               .count() /
           count;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    std::string_view name = argv[1];
    auto *f = name == "throw"   ? by_exception
              : name == "value" ? by_value
                                : bare;

    failures = argv[2] == std::string_view("retry") ? 2 : 0;
    measure(f, 20000);
    std::printf("%.2f\n", measure(f, failures != 0 ? 100000 : 5000000));
    return 0;
}
