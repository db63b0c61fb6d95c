// The receiver of OpenTelemetry's collector: takes spans by OTLP/HTTP at the
// address that it is given, and prints each request as it has understood it, a
// line of JSON. A span whose name is "POST refused" is refused for good.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func take(_ context.Context, traces ptrace.Traces) error {
	text, err := (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
	if err != nil {
		return err
	}
	fmt.Println(string(text))
	first := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	if first.Name() == "POST refused" {
		return consumererror.NewPermanent(errors.New("not this one"))
	}
	return nil
}

func run(address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	settings := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{
		"http": map[string]any{"endpoint": address}}})
	if err := settings.Unmarshal(config); err != nil {
		return err
	}
	next, err := consumer.NewTraces(take)
	if err != nil {
		return err
	}
	receiver, err := factory.CreateTraces(ctx,
		receivertest.NewNopSettings(factory.Type()), config, next)
	if err != nil {
		return err
	}
	if err := receiver.Start(ctx, componenttest.NewNopHost()); err != nil {
		return err
	}
	fmt.Println("ready")
	<-ctx.Done()
	return receiver.Shutdown(context.Background())
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
