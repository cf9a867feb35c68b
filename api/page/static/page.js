// The parts of the page that need a script: adding and deleting documents, following their steps,
// reading a passage in place. Markup comes from the server alone; every other text becomes a text node.
"use strict";

const POLL_MS = 1000;
const PATIENCE = 5; // times the server's response time, between two requests for the list
const PATIENT_MS = 5000; // between requests to a server that does not respond
const MEGABYTE = 1_000_000;
const CONFIRM = "Searches will no longer find its passages.";
const UNREACHABLE = {
  title: "The server does not answer",
  detail: "nothing was changed",
  advice: "Check that Callslip is running, then try again.",
};
const ENDED = {
  title: "Your login has ended",
  detail: "nothing was changed.",
  advice: "Then try again here.",
  login: "/login",
};

// What changes something carries the page's token (api/http/csrf.py).
const TOKEN = { "X-CSRF-Token": document.querySelector("meta[name=csrf-token]").content };

const byId = (id) => document.getElementById(id);

function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  made.className = className;
  return made;
}

// What stands between backticks is code.
function coded(text) {
  return text.split("`").map((part, n) => (n % 2 ? element("code", part) : part));
}

function problemOf({ title, detail, advice, login }) {
  const problem = element("div", "", "problem");
  const sentence = element("p");
  sentence.append(element("b", `${title}:`), " ", ...coded(detail));
  const hint = element("p", "", "advice");
  if (login) {
    const link = element("a", "Log in in another tab");
    Object.assign(link, { href: login, target: "_blank" });
    hint.append(link, ". ");
  }
  hint.append(...coded(advice));
  problem.append(sentence, hint);
  return problem;
}

// The response, unless the server does not answer or the login has ended.
async function reach(url, options) {
  const response = await fetch(url, options).catch(() => {
    throw UNREACHABLE;
  });
  if (response.status === 401) throw ENDED;
  return response;
}

// The parsed response, or the problem as an exception.
async function call(url, options) {
  const response = await reach(url, { ...options, headers: { ...options?.headers, ...TOKEN } });
  const body = await response.json().catch(() => {
    throw UNREACHABLE;
  });
  if (!response.ok) throw body;
  return body;
}

async function fetchMarkup(url, selector) {
  const response = await reach(url);
  const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
  const part = parsed.querySelector(selector);
  if (!part) throw UNREACHABLE;
  return document.adoptNode(part);
}

// Make `old` like `fresh` while keeping elements, so that focus, clicks and opened details survive.
function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  // The server's state opens it when work begins and closes it when work ends; in between the reader decides.
  if (old.dataset.unfold !== fresh.dataset.unfold) old.open = fresh.open;
  for (const { name, value } of fresh.attributes) {
    if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const wanted = new Set([...fresh.children].map((child) => child.id));
  for (const child of [...old.children]) if (!wanted.has(child.id)) child.remove();
  const byOldId = new Map([...old.children].filter((c) => c.id).map((c) => [c.id, c]));
  let at = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const same = child.id ? byOldId.get(child.id) : at && !at.id ? at : null;
    if (!same) {
      old.insertBefore(child, at);
      continue;
    }
    if (same === at) at = at.nextSibling;
    else old.insertBefore(same, at);
    morph(same, child);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// Watching.

let timer = 0;
let requested = 0;

async function refresh() {
  clearTimeout(timer);
  const mine = ++requested;
  const list = byId("document-list");
  const began = performance.now();
  let wait = POLL_MS;
  try {
    const fresh = await fetchMarkup(list.dataset.url, "#document-list");
    if (mine === requested) morph(list, fresh);
    wait = Math.max(POLL_MS, PATIENCE * (performance.now() - began)); // the list costs the server time
  } catch {
    wait = PATIENT_MS;
  }
  if (mine === requested) watch(wait);
}

function watch(wait = POLL_MS) {
  clearTimeout(timer);
  const unfinished = byId("document-list").dataset.unfinished === "true";
  if (unfinished && !document.hidden) timer = setTimeout(refresh, wait);
}

// Adding.

let underway = 0;
let queue = Promise.resolve();

function add(files) {
  const batch = files.length > 1 ? { batch_id: undefined, expected: files.length } : null;
  for (const file of files) {
    enqueue(file, newSlip(file.name), batch, false);
  }
}

function newSlip(name) {
  const slip = element("li", "", "slip");
  slip.append(element("span", name, "name"), element("span", "waiting", "state"));
  byId("uploads").append(slip);
  return slip;
}

function enqueue(file, slip, batch, allowDuplicate) {
  underway += 1;
  queue = queue.then(() => send(file, slip, batch, allowDuplicate)).finally(() => (underway -= 1));
}

// Files that are added together form a batch; if this request fails, they are only not counted as one.
async function expect(batch, more) {
  if (!batch) return;
  batch.expected += more;
  const headers = { "Content-Type": "application/json" };
  const options = { method: "POST", headers, body: JSON.stringify(batch) };
  await call(byId("drop").dataset.batches, options).then(
    ({ batch_id }) => (batch.batch_id = batch_id),
    () => {},
  );
}

async function send(file, slip, batch, allowDuplicate) {
  const { url, mostMb } = byId("drop").dataset;
  setState(slip, "working");
  try {
    if (file.size > mostMb * MEGABYTE) {
      throw {
        title: "File too large",
        detail: `the file has ${Math.round(file.size / MEGABYTE)} MB; the limit is ${mostMb} MB.`,
        advice: "Split the file, or raise api.max_upload_mb in the settings.",
      };
    }
    const form = new FormData();
    form.append("file", file);
    const tenant = document.getElementById("tenant");
    if (tenant) form.append("tenant", tenant.value);
    if (allowDuplicate) form.append("allow_duplicate", "true");
    if (batch && !batch.batch_id) await expect(batch, 0);
    if (batch?.batch_id) form.append("batch", batch.batch_id);
    const submitted = await call(url, { method: "POST", body: form });
    const lost = await lostProperties(submitted);
    if (lost.length > 0) {
      const edit = element("a", "Edit");
      edit.href = `/page/documents/${submitted.document_id}`;
      const before = `Version ${submitted.version - 1} had properties that the new version has not`;
      const text = element("p", `${before}: ${lost.join(", ")}. Set them again: `);
      text.append(edit);
      note(slip, "changed", text);
    } else if (submitted.outcome === "unchanged") {
      note(slip, "unchanged", element("p", "It is here already, with the same content."));
    } else {
      slip.remove();
    }
    await refresh();
  } catch (problem) {
    await expect(batch, -1);
    if (problem.type?.endsWith(":duplicate-content")) {
      const text = element("p", "The same content is here already under another name. ");
      const both = element("button", "Keep both", "quiet");
      both.addEventListener("click", () => {
        slip.querySelectorAll("p, button").forEach((part) => part.remove());
        enqueue(file, slip, null, true);
      });
      note(slip, "duplicate", text, both);
    } else {
      note(slip, "failed", problemOf(problem));
    }
    if (batch) await refresh();
  }
}

// The names of the properties of the version before that a new version has not: an upload sends none.
async function lostProperties({ outcome, version, status_url }) {
  if (outcome !== "accepted" || version === 1) return [];
  const { versions } = await call(`${status_url}/versions`).catch(() => ({ versions: [] }));
  const of = (number) => versions.find((each) => each.version === number)?.properties ?? {};
  const present = of(version);
  return Object.keys(of(version - 1)).filter((name) => !(name in present));
}

function refuseFolder(name) {
  const advice = "Drop the files in it, or send it with `callslip ingest FOLDER`.";
  const detail = "it is a folder; nothing was added.";
  note(newSlip(name), "failed", problemOf({ title: "Not a file", detail, advice }));
}

function setState(slip, word) {
  slip.className = `slip ${word}`;
  slip.querySelector(".state").textContent = word;
}

function note(slip, word, ...parts) {
  setState(slip, word);
  const dismiss = element("button", "Dismiss", "quiet");
  dismiss.addEventListener("click", () => slip.remove());
  slip.append(...parts, dismiss);
}

if (byId("drop")) {
  const drop = byId("drop");
  const files = byId("files");
  const take = () => {
    add([...files.files]);
    files.value = "";
  };
  files.addEventListener("change", take);
  if (files.files.length > 0) take(); // chosen before this script ran
  // The whole window accepts files, so that a file dropped beside the field does not replace the page.
  // Text that is dragged into a field stays the browser's.
  const hasFiles = (event) => event.dataTransfer.types.includes("Files");
  window.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    drop.classList.add("over");
  });
  window.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) drop.classList.remove("over");
  });
  window.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    drop.classList.remove("over");
    const items = [...event.dataTransfer.items].filter((item) => item.kind === "file");
    const entries = items.map((item) => item.webkitGetAsEntry());
    const dropped = [...event.dataTransfer.files];
    add(dropped.filter((file, n) => !entries[n]?.isDirectory));
    for (const folder of entries.filter((entry) => entry?.isDirectory)) refuseFolder(folder.name);
  });
  window.addEventListener("beforeunload", (event) => {
    if (underway) event.preventDefault();
  });
}

if (byId("document-list")) {
  document.addEventListener("visibilitychange", () => document.hidden || refresh());
  watch();
}

// Collections and deletion.

document.querySelectorAll("form.new-collection").forEach((form) =>
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const name = form.elements.namedItem("name").value;
    try {
      await call(form.dataset.url, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ name }),
      });
      location.assign(`/?${new URLSearchParams({ collection: name })}`);
    } catch (problem) {
      form.querySelector(".message").replaceChildren(problemOf(problem));
    }
  }),
);

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-delete]");
  // The name stands between marks that keep its direction of writing from what follows.
  if (!button || !confirm(`Delete “\u2068${button.dataset.name}\u2069”? ${CONFIRM}`)) return;
  button.disabled = true;
  try {
    await call(button.dataset.delete, { method: "DELETE" });
    await refresh();
    byId("files").focus();
  } catch (problem) {
    button.disabled = false;
    button.after(problemOf(problem));
  }
});

// Searching and reading.

document.addEventListener("click", async (event) => {
  const link = event.target.closest("a.in-context");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (link.ariaBusy) return;
  const hit = link.closest(".hit");
  const shown = hit.querySelector(".context, .problem");
  if (shown) {
    shown.remove();
    hit.classList.remove("opened");
  } else {
    link.textContent = "Opening …";
    link.ariaBusy = "true";
    const context = await fetchMarkup(link.href, "#passage, .problem").catch(problemOf);
    link.ariaBusy = null;
    context.removeAttribute("id");
    const sentence = context.querySelector("#cited");
    sentence?.removeAttribute("id");
    link.closest(".why").before(context);
    hit.classList.add("opened");
    if (sentence) sentence.scrollIntoView({ block: "center" });
    else context.querySelector(".passage-text")?.scrollIntoView({ block: "nearest" });
  }
  link.textContent = shown ? "In context" : "Close context";
  link.setAttribute("aria-expanded", String(!shown));
});

// Further hits are added below the shown ones, so that an answer above them stays.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a.more-hits");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (link.ariaBusy) return;
  const results = link.closest(".results");
  const shown = results.querySelector(".hits");
  results.querySelector(".paging + .problem")?.remove();
  link.ariaBusy = "true";
  try {
    const fresh = await fetchMarkup(link.href, ".results");
    const more = [...fresh.querySelectorAll(".hits > li")].slice(shown.children.length);
    shown.append(...more);
    for (const part of [".result-count", ".paging"]) {
      results.querySelector(part).replaceWith(fresh.querySelector(part) ?? "");
    }
    more[0]?.querySelector("a")?.focus();
  } catch (problem) {
    link.ariaBusy = null;
    link.closest(".paging").after(problemOf(problem));
  }
});

document.querySelectorAll(".pages img").forEach((image) => {
  const text = "This page cannot be drawn: the text of the passage is beside it.";
  const replace = () => image.replaceWith(element("p", text, "hint"));
  if (image.complete && !image.naturalWidth) replace();
  else image.addEventListener("error", replace);
});

const search = document.querySelector("form.search");
if (search) {
  byId("add-filter")?.addEventListener("click", () => {
    const row = byId("filters").lastElementChild.cloneNode(true);
    row.querySelectorAll("input").forEach((input) => (input.value = ""));
    byId("filters").append(row);
    row.querySelector("input").focus();
  });
  // Unchanged fields stay out of the address, which people bookmark and send.
  search.addEventListener("formdata", ({ formData }) => {
    for (const field of search.querySelectorAll("[data-default]")) {
      if (field.value === field.dataset.default) formData.delete(field.name);
    }
    if (formData.getAll("key").every((key) => !key.trim())) {
      for (const name of ["key", "operator", "value"]) formData.delete(name);
    }
  });
}
