/* Draws text and tables of the page in view: components of Dash as data, made elements of the document.
 *
 * Dash would search all components of the page once for each component that it replaces: a second of script for each
 * sample of a small fleet.  Here only the elements change whose data is new: data that is the same object as before is
 * skipped (see updates.js).  An element stays as long as its type does, and with it focus, selection and scrolling.  Rows
 * with keys move with their elements: a link that has the focus leads to the same receiver after the table has changed.
 *
 * Only html components and links between pages are drawn.  The server names a part with other components by
 * "data-drawn-by" = "dash" at its place; Dash draws it.
 */

(function () {
  "use strict";

  var NAMES = { className: "class", htmlFor: "for", colSpan: "colspan", rowSpan: "rowspan", tabIndex: "tabindex" };
  var TAGS = /^[A-Z][A-Za-z0-9]*$/;
  var NOT = { children: true, id: true, key: true, refresh: true, style: true };

  function isComponent(data) {
    return typeof data === "object" && data !== null && typeof data.type === "string" && data.props !== undefined;
  }

  function list(children) {
    if (children === null || children === undefined) {
      return [];
    }
    return Array.isArray(children) ? children : [children];
  }

  /* As dcc.Link does: the page changes, and the document stays. */
  function follow(event) {
    if (event.metaKey || event.shiftKey || event.altKey || event.ctrlKey) {
      return;
    }
    event.preventDefault();
    window.history.pushState({}, "", event.currentTarget.getAttribute("href"));
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
    window.scrollTo(0, 0);
  }

  function make(data) {
    if (!isComponent(data)) {
      return document.createTextNode(data === null || data === undefined ? "" : String(data));
    }
    if (!TAGS.test(data.type)) {
      throw new Error("no element is called " + data.type);
    }
    var isLink = data.namespace === "dash_core_components" && data.type === "Link";
    var element = document.createElement(isLink ? "a" : data.type.toLowerCase());
    if (isLink) {
      element.addEventListener("click", follow);
    }
    describe(element, {}, data.props);
    content(element, [], list(data.props.children));
    return element;
  }

  /* Sets the properties that differ. */
  function describe(element, before, after) {
    Object.keys(Object.assign({}, before, after)).forEach(function (property) {
      var value = after[property];
      if (NOT[property] || before[property] === value) {
        return;
      }
      var name = NAMES[property] || property;
      if (value === undefined || value === null || value === false) {
        element.removeAttribute(name);
      } else {
        element.setAttribute(name, value === true && name.slice(0, 5) !== "aria-" ? "" : String(value));
      }
    });
    if (before.style !== after.style) {
      element.removeAttribute("style");
      Object.keys(after.style || {}).forEach(function (name) {
        if (name.slice(0, 2) === "--") {
          element.style.setProperty(name, after.style[name]);
        } else {
          element.style[name] = after.style[name];
        }
      });
    }
    if (after.id !== undefined) {
      element.id = after.id;
    }
  }

  function isSameKind(before, after) {
    return isComponent(before) && isComponent(after) && before.type === after.type && before.namespace === after.namespace;
  }

  /* The places of children by their keys; null: one has no key, or two have the same. */
  function keys(children) {
    var places = new Map();
    var isKeyed = children.every(function (data, place) {
      var key = isComponent(data) ? data.props.key : undefined;
      var isOwn = typeof key === "string" && !places.has(key);
      places.set(key, place);
      return isOwn;
    });
    return isKeyed ? places : null;
  }

  /* Moves the children that stay to their new places, and makes those that are new; returns from what each was drawn. */
  function moved(element, before, after) {
    var old = keys(before);
    var now = keys(after);
    if (old === null || now === null) {
      return before;
    }
    var focused = element.contains(document.activeElement) ? document.activeElement : null;
    var children = Array.from(element.childNodes);
    before.forEach(function (data, place) {
      if (!now.has(data.props.key)) {
        children[place].remove();
      }
    });
    var drawn = after.map(function (data, place) {
      var from = old.get(data.props.key);
      var child = from === undefined ? make(data) : children[from];
      if (element.childNodes[place] !== child) {
        element.insertBefore(child, element.childNodes[place] || null);
      }
      return from === undefined ? data : before[from];
    });
    if (focused !== null && focused !== document.activeElement && element.contains(focused)) {
      focused.focus({ preventScroll: true });
    }
    return drawn;
  }

  /* Makes the children of an element, which were drawn from the first list, those of the second. */
  function content(element, before, after) {
    before = moved(element, before, after);
    after.forEach(function (data, place) {
      var child = element.childNodes[place];
      if (child === undefined) {
        element.appendChild(make(data));
      } else if (data === before[place]) {
        return;
      } else if (isSameKind(before[place], data)) {
        describe(child, before[place].props, data.props);
        content(child, list(before[place].props.children), list(data.props.children));
      } else {
        element.replaceChild(make(data), child);
      }
    });
    while (element.childNodes.length > after.length) {
      element.lastChild.remove();
    }
  }

  /* Draws children into a place.  `before`: what was drawn there last; undefined: Dash drew what is there. */
  window.heliographDraw = function (place, before, after) {
    if (before === undefined) {
      place.replaceChildren();
    }
    content(place, before === undefined ? [] : list(before), list(after));
  };
})();
