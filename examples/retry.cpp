/* retry.cpp - a function that throws, retried in C++.
 *
 * fetch() is your code: it returns what it was asked for, or throws an exception
 * of your own. The classifier says what that means, once, and the policy says
 * what is retried. Here the server is a list of answers. */
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include <stagger/stagger.hpp>

using namespace std::chrono_literals;

namespace
{

struct http_error : std::runtime_error {
    http_error(int answer, stagger::nanoseconds after = {})
        : std::runtime_error("HTTP " + std::to_string(answer)), status(answer),
          retry_after(after)
    {
    }

    int status;
    stagger::nanoseconds retry_after;
};

struct server {
    std::vector<http_error> troubles; // and then it works

    std::string fetch(const char *path, stagger::nanoseconds timeout)
    {
        std::printf("GET %s, within %lld ms\n", path,
                    static_cast<long long>(timeout / 1ms));
        if (troubles.empty())
            return "pears: 7";
        http_error trouble = troubles.front();
        troubles.erase(troubles.begin());
        throw trouble;
    }
};

stagger::options with_http()
{
    stagger::options o;

    o.method = "GET"; // a POST would need a key
    o.classify = stagger::classifier([](const http_error &e) {
        return stagger::outcome(stg_answered(e.status)).after(e.retry_after);
    });
    return o;
}

} // namespace

int main()
{
    // What all calls of one service share: its budget and its breaker.
    stagger::peer stock(
        "client base=10ms attempt-timeout=2s breaker=9:30s "
        "budget=tokens:100:10/s");
    stagger::options o = with_http();
    server busy{{http_error(503), http_error(429, 30ms)}};
    server poor{{http_error(404)}}, gone{{http_error(410)}};

    std::string body = stagger::retry(stock, o, [&](stagger::attempt &a) {
        return busy.fetch("/stock", a.timeout());
    });
    std::printf("    %s\n", body.c_str());

    // The fallback is shown where the service has nothing.
    std::string figs = stagger::retry(
        stock, o,
        [&](stagger::attempt &a) { return gone.fetch("/figs", a.timeout()); },
        stagger::fallback(std::string("no figs")));
    std::printf("    %s\n", figs.c_str());

    try {
        stagger::retry(stock, o, [&](stagger::attempt &a) {
            return poor.fetch("/plums", a.timeout());
        });
    } catch (const stagger::gave_up &e) {
        std::printf("    %s\n", e.what());
        try {
            e.rethrow_last();
        } catch (const http_error &last) {
            return body + figs == "pears: 7no figs" && last.status == 404 ? 0
                                                                          : 1;
        }
    }
    return 1;
}
