import { expect, test } from "vitest";
import { decodeEntities } from "./entities";

test("character references are decoded by name and by number; unknown ones stay as written", () => {
  expect(decodeEntities("&lt;b&gt; &amp;amp; &quot;&apos;&#39;&#x27;&nbsp;|")).toBe("<b> &amp; \"'''\u00a0|");
  expect(decodeEntities("&eacute;&yuml;&Alpha;&Sigma;&omega;&sigmaf;&rarr;&hearts;&mdash;&hellip;&euro;")).toBe(
    "éÿΑΣως→♥—…€",
  );
  expect(decodeEntities("&#8212;&#x1F600;&#0;&#xD800;&#9999999;")).toBe("—😀\uFFFD\uFFFD\uFFFD");
  expect(decodeEntities("a & b &unknown; &- &amp AT&T;")).toBe("a & b &unknown; &- &amp AT&T;");
});
