// Python as it is read: words, texts and comments in colours of the theme.
import { h } from "/static/dom.js";

const PARTS = /("""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(#[^\n]*|^\$ )|\b(as|class|def|for|from|if|import|in|is|not|return|while|with|yield|lambda|None|True|False|SELECT|FROM|WHERE)\b/gm;

export function code(text) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(PARTS)) {
    parts.push(text.slice(at, found.index), h("span", { class: found[1] ? "code-text" : found[2] ? "code-note" : "code-word" }, found[0]));
    at = found.index + found[0].length;
  }
  return h("pre", { class: "text lab-code", tabindex: 0, role: "region", "aria-label": "Code" }, parts, text.slice(at));
}
