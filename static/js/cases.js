// Cases and verification: decisions by keys. The server renders each page; an unsent decision is
// kept in this browser until it is sent.
import * as connection from "./connection.js";
import * as fields from "./fields.js";
import * as reservations from "./reservations.js";
import * as keys from "./keys.js";
import { panel, rename, say, screen } from "./page.js";
import * as texts from "./texts.js";
import * as pressGuard from "./press_guard.js";

const form = document.querySelector("[data-decision]");
const focusTarget = () => document.querySelector("[data-focus]");
const began = performance.now();

// ------------------------------------------------------------------------------------- what is begun

const A_DAY = 24 * 60 * 60 * 1000;
const prefix = `case|${screen().dataset.who}|`;
const kind = form?.id === "contest" ? "verify" : "adjudicate";
const ofItem = `|${panel().dataset.item}|${panel().dataset.revision}`;
const ofTexts = `${prefix}${kind}|${panel().dataset.item}|`;
const nameOf = () => prefix + kind + ofItem;
const textareas = () => [...form.querySelectorAll("textarea")];

let unasked = {}; // what is written for questions that are asked no more

// `sentAt` once it was sent, which may have failed.
function keep(sentAt = null) {
  const words = { ...unasked, ...Object.fromEntries(textareas().map((text) => [text.name, text.value])) };
  try {
    localStorage.setItem(nameOf(), JSON.stringify({ answers: fields.answers(form), words, sentAt }));
  } catch {
    say("This browser cannot save your draft. Save your answer before you leave.");
  }
}

// What was sent is kept for an undo, and longer unless the server had it as the last answer.
function forgetSent() {
  for (const name of Object.keys(localStorage).filter((one) => one.startsWith(prefix))) {
    const kept = JSON.parse(localStorage.getItem(name));
    const isStored = kept.isStored || name === prefix + screen().dataset.stored;
    if (!kept.sentAt) continue;
    if (Date.now() - kept.sentAt > (isStored ? A_DAY : 30 * A_DAY)) localStorage.removeItem(name);
    else if (isStored) localStorage.setItem(name, JSON.stringify({ ...kept, isStored }));
  }
}

// By the page's address until version 0.2; it has the name of the project, and differs after a refusal.
function adopt() {
  const isFormer = (name) => name.startsWith(`${prefix}/`) && name.includes(`/${kind}/`) && name.endsWith(ofItem);
  for (const name of Object.keys(localStorage).filter(isFormer)) rename(name, nameOf());
}

// The words that were begun before the texts were corrected; what was chosen was about those texts.
function bringOver() {
  const isOfItem = (name) => name.startsWith(ofTexts) && /^\d+$/.test(name.slice(ofTexts.length));
  for (const name of Object.keys(localStorage).filter(isOfItem)) {
    const { words, sentAt, isStored } = JSON.parse(localStorage.getItem(name));
    if (isStored || !Object.values(words).some(Boolean) || localStorage.getItem(nameOf()) !== null) continue;
    try {
      localStorage.setItem(nameOf(), JSON.stringify({ answers: {}, words, sentAt }));
    } catch {
      return; // until there is room
    }
    localStorage.removeItem(name);
  }
}

function restore() {
  adopt();
  bringOver();
  const kept = JSON.parse(localStorage.getItem(nameOf()));
  if (!kept) return false;
  for (const input of form.querySelectorAll("[data-field] input")) {
    if (kept.answers[input.name]) fields.fill(input, kept.answers[input.name]);
  }
  for (const text of textareas()) text.value = kept.words[text.name] ?? text.value;
  const isAsked = (name) => textareas().some((text) => text.name === name);
  unasked = Object.fromEntries(Object.entries(kept.words).filter(([name, text]) => text && !isAsked(name)));
  if (Object.keys(unasked).length) connection.keepUnasked(Object.values(unasked));
  return true;
}

// --------------------------------------------------------------------------------------- the contest

const opener = document.querySelector("[data-contest]");

function contest(open = true) {
  if (!opener) return;
  form.hidden = !open;
  opener.setAttribute("aria-expanded", String(open));
  if (!open) return focusTarget().focus();
  form.querySelector("fieldset input")?.focus();
  say("Choose the right answer and write why the label is wrong. Ctrl+Enter saves.");
}

// -------------------------------------------------------------------------------------------- sending

document.addEventListener(
  "submit",
  (event) => {
    const sent = event.target;
    if (!sent.matches("[data-decision], [data-timed]")) return;
    if (!pressGuard.is()) pressGuard.refuse();
    const isDropped = sent !== form && form && !form.hidden && textareas().some((text) => text.value.trim());
    if (isDropped && pressGuard.is() && !confirm("You started to contest this label. Confirm it anyway?")) {
      event.preventDefault();
      return;
    }
    if (!pressGuard.is() || (sent === form && fields.ask(form))) {
      event.preventDefault();
      return;
    }
    sent.elements.seconds.value = ((performance.now() - began) / 1000).toFixed(1);
    pressGuard.hold();
    if (sent === form) keep(Date.now());
  },
  true,
);

function press(selector) {
  const button = document.querySelector(selector);
  if (button && pressGuard.is()) button.click();
  else if (button) pressGuard.refuse();
  return Boolean(button);
}

function openGold() {
  const gold = document.querySelector("[data-gold]");
  if (!gold) return;
  gold.open = true;
  gold.querySelector("textarea").focus();
}

const comment = () => form?.querySelector("textarea[name=comment]");

const ACTIONS = {
  span: () => form && !form.hidden && fields.mark(form),
  comment: () => comment()?.focus(),
  difference: () => texts.toggle(panel()),
  correct: openGold,
  next: () => say(texts.go(panel(), 1)),
  previous: () => say(texts.go(panel(), -1)),
  undo: () => press('[data-press="undo"]') || say("You have nothing to undo."),
  fold: () => say(texts.fold(panel())),
  x: () => contest(),
  y: () => press('[data-press="confirm"]') || say("This result cannot be confirmed. Give the answer that is right."),
  keys: () => document.getElementById("keys").showModal(),
};

keys.listen((name) => {
  if (/^[\d+-]$/.test(name)) {
    if (!form || form.hidden) return false;
    if (!pressGuard.is()) pressGuard.refuse();
    else if (!fields.press(form, name)) fields.deny(form, keys.keyOfOption);
    return true;
  }
  if (!Object.hasOwn(ACTIONS, name)) return false;
  ACTIONS[name]();
  return true;
}, (key) => Boolean(form) && !form.hidden && fields.takes(form, key));

document.addEventListener("keydown", (event) => {
  const inside = event.target.closest?.("form");
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    if (inside && inside !== form && keys.isTyping(event)) inside.requestSubmit();
    else if (form && !form.hidden && !pressGuard.is()) pressGuard.refuse();
    else if (form && !form.hidden) fields.send(form);
  }
  if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (keys.isTyping(event)) focusTarget().focus();
  else if (opener && !form.hidden) contest(false);
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-keys]")) ACTIONS.keys();
  if (event.target.closest("[data-contest]")) contest(form.hidden);
});

// ------------------------------------------------------------------------------------------ beginning

forgetSent();
if (form) {
  const restored = restore();
  fields.bind(form);
  if (opener) {
    opener.hidden = false;
    form.hidden = !(restored || "open" in form.dataset);
  }
  form.addEventListener("input", () => keep());
  form.addEventListener("change", () => keep());
}
document.querySelector("[data-keys]").hidden = false;
texts.draw(panel());
reservations.begin();
pressGuard.release();
focusTarget().focus({ preventScroll: true });
