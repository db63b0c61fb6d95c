#include <stagger/text.h>

static const stg_preset presets[] = {
    {"broadcast",
     "fixed base=1s jitter=none attempts=3 attempt-timeout=10s deadline=none "
     "breaker=20:200ms-30s breaker-connect=3 "
     "retry=500,502,503,504,timeout,reset,protocol,429,408,425,"
     "pushback,grpc:4,grpc:10,grpc:14,transient once=connect-timeout,tls-timeout",
     "one message to many endpoints: quick, few attempts, fails fast on what "
     "is down"},
    {"broadcast-wide",
     "fixed base=1s jitter=50% attempts=3 attempt-timeout=10s deadline=none "
     "breaker=20:200ms-30s breaker-connect=3 "
     "retry=500,502,503,504,timeout,reset,protocol,429,408,425,"
     "pushback,grpc:4,grpc:10,grpc:14,transient once=connect-timeout,tls-timeout",
     "the same to 50 endpoints and more: spread, so that they do not come "
     "back together"},
    {"backend",
     "exponential base=200ms cap=30s jitter=full attempts=5 deadline=2m "
     "budget=tokens:100:10/s",
     "a service that calls a service or a database"},
    {"client", "exponential base=1s cap=10s jitter=full attempts=4",
     "a program far from the server, one of many"},
    {"interactive", "exponential base=100ms cap=10s jitter=full attempts=6",
     "somebody waits for the answer"},
    {"unjittered", "exponential base=500ms cap=30s jitter=none attempts=4",
     "one client only: exact waits, which many clients would share"},
    {"webhook",
     "list=5s,5m,30m,2h,5h,10h,10h jitter=20% attempts=8 deadline=none "
     "attempt-timeout=30s retry=any never=410 "
     "breaker=20:200ms-30s breaker-connect=3",
     "a partner's endpoint: for more than a day, until it says 410 Gone"},
    {"aws", "exponential base=1s cap=20s jitter=full attempts=3 budget=aws",
     "what the AWS SDKs call standard"},
    {"none", "attempts=1", "no retry"},
};

const stg_preset *stg_preset_at(size_t i)
{
    return i < sizeof presets / sizeof *presets ? &presets[i] : NULL;
}
