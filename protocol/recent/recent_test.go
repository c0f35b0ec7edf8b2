package recent

import (
	"testing"
	"testing/synctest"
	"time"

	"turnstone/protocol/clock"
)

func (c *Cache[K, V]) wants(t *testing.T, want map[K]V) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	size := 0
	for element := c.order.Front(); element != nil; element = element.Next() {
		size += element.Value.(*entry[K, V]).size
	}
	if len(c.byKey) != len(want) || c.order.Len() != len(want) || c.size != size || c.size > c.most {
		t.Fatalf("%d keys, %d values, size %d of %d, counted as %d; want %d", len(c.byKey), c.order.Len(), size, c.most, c.size, len(want))
	}
	for key, value := range want {
		if element := c.byKey[key]; element == nil || any(element.Value.(*entry[K, V]).value) != any(value) {
			t.Fatalf("%v has not the value %v", key, value)
		}
	}
}

func TestTheValuesUsedLastAreKept(t *testing.T) {
	c := New[string, int](10, 0)
	c.Put("a", 1, 4)
	c.Put("b", 2, 4)
	if value, found := c.Get("a"); !found || value != 1 {
		t.Errorf("got %d, %v", value, found)
	}
	c.Put("c", 3, 4)
	c.wants(t, map[string]int{"a": 1, "c": 3})
	c.Put("c", 4, 5) // replaced
	c.wants(t, map[string]int{"a": 1, "c": 4})
	c.Put("a", 5, 6) // more than half of the limit
	c.wants(t, map[string]int{"c": 4})
	if value, found := c.Get("a"); found || value != 0 {
		t.Errorf("got %d, %v", value, found)
	}
	if value := c.GetOrPut("c", func() int { return 9 }); value != 4 {
		t.Errorf("got %d", value)
	}
	if value := c.GetOrPut("d", func() int { return 9 }); value != 9 {
		t.Errorf("got %d", value)
	}
	c.wants(t, map[string]int{"c": 4, "d": 9})
}

func TestWhatIsNotUsedIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New[string, int](10, time.Minute)
		c.Put("a", 1, 1)
		_ = clock.Sleep(t.Context(), 40*time.Second)
		c.Put("b", 2, 1)
		c.Put("c", 3, 1)
		_ = clock.Sleep(t.Context(), 30*time.Second)
		synctest.Wait()
		c.wants(t, map[string]int{"b": 2, "c": 3})
		c.Get("b")
		_ = clock.Sleep(t.Context(), 40*time.Second)
		synctest.Wait()
		c.wants(t, map[string]int{"b": 2})
		_ = clock.Sleep(t.Context(), time.Minute)
		synctest.Wait()
		c.wants(t, map[string]int{})
		if c.timer != nil {
			t.Error("a timer runs for nothing")
		}
		c.Put("d", 4, 1)
		_ = clock.Sleep(t.Context(), time.Minute)
		synctest.Wait()
		c.wants(t, map[string]int{})
	})
}
