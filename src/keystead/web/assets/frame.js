// What every page can do: theme, menu, keys, and suggestions under the search box. Listens on the document, because the
// page itself is drawn later and again. Chosen before anything is painted, so that a dark page does not flash white.
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => root.dataset.theme = localStorage.getItem("keystead-theme") || (dark.matches ? "dark" : "light");
  dark.addEventListener("change", apply);
  apply();
  if (localStorage.getItem("keystead-welcomed")) root.dataset.welcomed = "yes";
  const find = (selector) => document.querySelector(selector);
  const turnTheme = () => {
    localStorage.setItem("keystead-theme", root.dataset.theme === "dark" ? "light" : "dark");
    apply();
  };

  // -- the menu of a small screen -----------------------------------------------------------------------------------
  const openMenu = (open) => {
    if (root.classList.contains("menu-open") === open) return;
    root.classList.toggle("menu-open", open);
    const button = find("[data-does=menu]");
    button.setAttribute("aria-expanded", String(open));
    (open ? find(".ks-menu a[aria-current]") || find(".ks-menu a") : button).focus();
  };
  const help = (open) => {
    const dialog = find("#ks-help");
    if (!dialog) return;
    if (open && !dialog.open) dialog.showModal(); else if (!open && dialog.open) dialog.close();
  };
  document.addEventListener("click", (event) => {
    const does = event.target.closest?.("[data-does]")?.dataset.does;
    if (does === "theme") turnTheme();
    if (does === "menu") openMenu(!root.classList.contains("menu-open"));
    else if (root.classList.contains("menu-open") && !event.target.closest(".ks-menu")) openMenu(false);
    if (does === "help") help(true);
    if (does === "welcomed") localStorage.setItem("keystead-welcomed", root.dataset.welcomed = "yes");
    if (does === "close" || event.target.id === "ks-help") help(false);
    if (!event.target.closest?.(".ks-find")) hints.close();
  });

  // -- keys ---------------------------------------------------------------------------------------------------------
  let gone = 0;
  const typing = (at) => at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName);
  document.addEventListener("keydown", (event) => {
    if (event.target.matches?.(".ks-find input") && hints.key(event)) return;
    if (event.key === "Escape") {
      openMenu(false);
      if (typing(event.target)) event.target.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || find("dialog[open], .q-dialog")) return;
    if (event.key === "/") {
      event.preventDefault();
      const box = find(".ks-find input");
      box?.focus();
      box?.select();
    } else if (event.key === "?") help(true);
    else if (event.key === "t" && event.timeStamp >= gone) turnTheme();
    else if (event.key === "g") {
      gone = event.timeStamp + 1500;
      return;
    } else if (event.timeStamp < gone) find(`.ks-menu a[data-letter="${CSS.escape(event.key)}"]`)?.click();
    gone = 0;
  });

  // -- suggestions --------------------------------------------------------------------------------------------------
  const hints = {
    waiting: 0, asked: null, at: -1,
    list: () => find("#ks-hints"), box: () => find(".ks-find input"),
    close() {
      clearTimeout(this.waiting);
      this.asked?.abort();
      this.at = -1;
      const list = this.list();
      if (!list || list.hidden) return;
      list.hidden = true;
      this.box().setAttribute("aria-expanded", "false");
      this.box().removeAttribute("aria-activedescendant");
    },
    ask(text) {
      clearTimeout(this.waiting);
      this.asked?.abort();
      if (text.trim().length < 2) return this.close();
      this.waiting = setTimeout(async () => {
        this.asked = new AbortController();
        try {
          const answer = await fetch(`/find/hints?q=${encodeURIComponent(text)}`, {signal: this.asked.signal});
          if (answer.ok) this.show(await answer.json());
        } catch (error) {
          if (error.name !== "AbortError") this.close();
        }
      }, 160);
    },
    show(found) {
      const list = this.list(), box = this.box();
      if (!list || document.activeElement !== box) return;
      this.at = -1;
      box.removeAttribute("aria-activedescendant");
      list.replaceChildren(...found.map((hit, number) => {
        const line = document.createElement("a");
        line.id = `ks-hint-${number}`;
        line.href = hit.address;
        line.tabIndex = -1;
        line.setAttribute("role", "option");
        for (const part of ["kind", "title", "says"]) {
          const piece = document.createElement("span");
          piece.className = part;
          piece.textContent = hit[part];
          line.append(piece);
        }
        return line;
      }));
      list.hidden = !found.length;
      box.setAttribute("aria-expanded", String(found.length > 0));
    },
    key(event) {
      const list = this.list();
      if (!list || list.hidden) return false;
      const lines = [...list.children];
      if (event.key === "Escape") this.close();
      else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        this.at = (this.at + (event.key === "ArrowDown" ? 1 : -1) + lines.length + (this.at < 0 && event.key === "ArrowUp")) % lines.length;
        lines.forEach((line, number) => line.setAttribute("aria-selected", String(number === this.at)));
        this.box().setAttribute("aria-activedescendant", lines[this.at].id);
      } else if (event.key === "Enter" && this.at >= 0) lines[this.at].click();
      else return false;
      event.preventDefault();
      return true;
    },
  };
  document.addEventListener("input", (event) => {
    if (event.target.matches?.(".ks-find input")) hints.ask(event.target.value);
  });
  document.addEventListener("focusout", (event) => {
    if (event.target.closest?.(".ks-find") && event.relatedTarget && !event.relatedTarget.closest(".ks-find")) hints.close();
  });
})();
