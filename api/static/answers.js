// Questions to the agent: what is done while an answer is made, conversations, citations that open
// in place, and what a reader says of an answer. Markup comes from the server alone.
"use strict";

let address = location.pathname + location.search; // of what is shown

// Not of `crypto.randomUUID`, which browsers keep from pages without TLS.
function newThread() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (left + value).split("\n\n");
    left = blocks.pop();
    for (const block of blocks) {
      const [, kind, data] = block.match(/^event: (.*)\ndata: (.*)$/);
      yield { kind, data: JSON.parse(data) };
    }
  }
}

function outcomeIn(markup) {
  const found = new DOMParser().parseFromString(markup, "text/html").querySelector("#outcome");
  return document.adoptNode(found);
}

// The outcome that the desk makes of a form; `tell` hears what it is doing meanwhile.
async function answerTo(form, fields, tell) {
  let response;
  try {
    response = await fetch(form.dataset.ask, { method: "POST", body: fields });
    if (!response.ok) {
      const said = new DOMParser().parseFromString(await response.text(), "text/html");
      const told = said.querySelector(".problem");
      if (told) return document.adoptNode(told);
      throw UNREACHABLE;
    }
    let again = 0;
    for await (const { kind, data } of events(response)) {
      if (kind === "outcome") return outcomeIn(data);
      again += data === "searching";
      tell(`${data[0].toUpperCase()}${data.slice(1)}${again > 1 ? `, try ${again}` : ""} …`);
    }
  } catch {
    // told below: the desk, or the way to it, ended
  }
  return problemOf(UNREACHABLE);
}

async function ask(form) {
  const fields = new URLSearchParams(new FormData(form));
  fields.set("ask", "1");
  if (!fields.has("thread")) fields.set("thread", newThread());
  const buttons = [...document.querySelectorAll(".asks button[type=submit]")];
  const doing = element("p", "Asking …", "doing");
  doing.setAttribute("role", "status");
  document.querySelectorAll(".doing, .follow-up ~ .problem").forEach((past) => past.remove());
  if (form.classList.contains("follow-up")) form.after(doing);
  else byId("outcome").replaceChildren(doing);
  buttons.forEach((button) => (button.disabled = true));
  const made = await answerTo(form, fields, (word) => (doing.textContent = word));
  buttons.forEach((button) => (button.disabled = false));
  if (made.id !== "outcome") {
    doing.replaceWith(made);
    return;
  }
  byId("outcome").replaceWith(made);
  document.querySelector(".desk .hint")?.remove();
  byId("q").value = fields.get("q");
  address = `/?${fields}`;
  history.pushState(null, "", address);
  document.title = `${fields.get("q")} · Callslip`;
  const heading = document.getElementById("answer-heading");
  heading?.focus({ preventScroll: true });
  heading?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form.asks");
  if (!form || event.submitter?.name !== "ask") return;
  event.preventDefault();
  ask(form);
});

window.addEventListener("popstate", () => {
  if (location.pathname + location.search !== address) location.reload();
});

document.addEventListener("click", (event) => {
  const mark = event.target.closest("a.cited");
  if (!mark || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const citation = byId(mark.hash.slice(1));
  const link = citation.querySelector("a.in-context");
  const opened = citation.querySelector(".context");
  if (opened) (opened.querySelector(".sentence") ?? opened).scrollIntoView({ block: "center" });
  else link.click();
  link.focus({ preventScroll: true });
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-verdict]");
  if (!button) return;
  const said = button.closest(".feedback");
  const { url, trace } = said.dataset;
  const buttons = [...said.querySelectorAll("button")];
  buttons.forEach((each) => (each.disabled = true));
  try {
    await call(url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ trace_id: trace, verdict: button.dataset.verdict }),
    });
    said.querySelector(".told").textContent = `Noted: ${button.textContent.toLowerCase()}.`;
  } catch (problem) {
    buttons.forEach((each) => (each.disabled = false));
    said.querySelector(".told").replaceChildren(problemOf(problem));
  }
});
