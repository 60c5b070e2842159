package main

import (
	"github.com/cncf/xds/go/udpa/annotations"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

const redacted = "[redacted]"

// redact replaces, in place, what Envoy's API marks as sensitive: private keys,
// passwords, session ticket keys. It looks into every Any.
func redact(m protoreflect.Message) error {
	if packed, ok := m.Interface().(*anypb.Any); ok {
		return redactAny(packed)
	}
	var failed error
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if sensitive(f) {
			redactField(m, f)
			return true
		}
		failed = redactValue(f, v)
		return failed == nil
	})
	return failed
}

func redactAny(a *anypb.Any) error {
	m, err := a.UnmarshalNew()
	if err != nil {
		return err
	}
	if err := redact(m.ProtoReflect()); err != nil {
		return err
	}
	return a.MarshalFrom(m)
}

func sensitive(f protoreflect.FieldDescriptor) bool {
	is, _ := proto.GetExtension(f.Options(), annotations.E_Sensitive).(bool)
	return is
}

// redactField leaves a sign that something is there; what cannot hold one is
// cleared.
func redactField(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	switch {
	case f.IsList() || f.IsMap():
		m.Clear(f)
	case f.Kind() == protoreflect.StringKind:
		m.Set(f, protoreflect.ValueOfString(redacted))
	case f.Kind() == protoreflect.BytesKind:
		m.Set(f, protoreflect.ValueOfBytes([]byte(redacted)))
	default:
		if _, isSource := m.Get(f).Message().Interface().(*corev3.DataSource); isSource {
			m.Set(f, protoreflect.ValueOfMessage((&corev3.DataSource{
				Specifier: &corev3.DataSource_InlineString{InlineString: redacted},
			}).ProtoReflect()))
			return
		}
		m.Clear(f)
	}
}

// redactValue looks into the messages of one field.
func redactValue(f protoreflect.FieldDescriptor, v protoreflect.Value) error {
	switch {
	case f.IsMap():
		if f.MapValue().Message() == nil {
			return nil
		}
		var failed error
		v.Map().Range(func(_ protoreflect.MapKey, x protoreflect.Value) bool {
			failed = redact(x.Message())
			return failed == nil
		})
		return failed
	case f.Message() == nil:
		return nil
	case f.IsList():
		for i := range v.List().Len() {
			if err := redact(v.List().Get(i).Message()); err != nil {
				return err
			}
		}
		return nil
	}
	return redact(v.Message())
}
