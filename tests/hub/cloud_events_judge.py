"""Events of the package of PyPI. `make`: requests, as JSON, of events in both
modes; `read`: what it reads of such requests on stdin, an event each."""
import base64
import datetime
import json
import sys

from cloudevents.core.bindings import http
from cloudevents.core.v1.event import CloudEvent

WHEN = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.timezone.utc)
EVENTS = [({"datacontenttype": "application/json", "subject": 'a "b" € %',
            "time": WHEN, "comexampleext": "1"},
           {"n": [1, 2.5, None], "s": "€"}),
          ({"datacontenttype": "text/plain"}, "line\n\"two\" €"),
          ({"datacontenttype": "image/png"}, b"\x89PNG\r\n\xff\x00"),
          ({"dataschema": "http://127.0.0.1/schema"}, None)]


def requests():
    for number, (attributes, data) in enumerate(EVENTS):
        event = CloudEvent({"id": str(number), "source": "/judge",
                            "type": "com.example.judge", "specversion": "1.0",
                            **attributes}, data)
        for make in (http.to_binary_event, http.to_structured_event):
            message = make(event)
            yield {"headers": message.headers,
                   "body": base64.b64encode(message.body).decode()}


def read(request):
    event = http.from_http_event(http.HTTPMessage(
        request["headers"], base64.b64decode(request["body"])))
    data = event.get_data()
    return {**{name: str(value)
               for name, value in event.get_attributes().items()},
            "data": base64.b64encode(data).decode()
            if isinstance(data, bytes) else data}


if sys.argv[1] == "make":
    print(json.dumps(list(requests())))
else:
    print(json.dumps([read(request) for request in json.load(sys.stdin)]))
