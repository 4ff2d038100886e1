//! Checks that the modules of a crate have one direction: no cycle of siblings, and no dependency against the order of
//! ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Module = Vec<String>;
/// Arrows between the children of each module, with a file for each.
type Arrows = BTreeMap<Module, BTreeMap<(String, String), String>>;

#[test]
fn modules_have_one_direction() {
    let root = crate::root();
    let text = fs::read_to_string(root.join("doc/ARCHITECTURE.md")).unwrap();
    let mut faults = Vec::new();
    for member in crate::MEMBERS {
        let levels = order(&text, member);
        let sources = Sources::read(&root.join(member).join("src"));
        let arrows = sources.arrows();
        for (parent, arrows) in &arrows {
            if let Some(circle) = circle(arrows) {
                let place = [&[member.to_owned()], &parent[..]].concat().join("::");
                faults.push(format!("{place}: circle {}", circle.join(" -> ")));
            }
        }
        // Modules of the program are commands: it has no order, only no circles.
        let Some(levels) = levels else {
            assert_eq!(member, "bench/cli", "ARCHITECTURE.md has no order for `{member}`");
            continue;
        };
        for name in sources.top_level().filter(|name| !levels.contains_key(*name)) {
            faults.push(format!("{member}: `{name}` is missing in the order"));
        }
        for ((from, to), file) in arrows.get(&Vec::new()).into_iter().flatten() {
            if let (Some(above), Some(below)) = (levels.get(from), levels.get(to))
                && above <= below
            {
                faults.push(format!("{member}: {from} -> {to} against the order ({file})"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Level of each module in the line ``- `member`: a, b < c < d`` of ARCHITECTURE.md, the lowest first.
fn order(text: &str, member: &str) -> Option<BTreeMap<String, usize>> {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("- `{member}`: ")))?;
    let levels = line.split('<').enumerate();
    let names = levels.flat_map(|(level, names)| names.split(',').map(move |name| (name, level)));
    Some(names.map(|(name, level)| (name.trim().trim_matches('`').to_owned(), level)).collect())
}

/// One circle of the arrows, if there is any.
fn circle(arrows: &BTreeMap<(String, String), String>) -> Option<Vec<String>> {
    let nodes = arrows.keys().map(|(from, _)| from).collect::<BTreeSet<_>>();
    nodes.into_iter().find_map(|start| path(arrows, &mut vec![start.clone()], &mut BTreeSet::new()))
}

/// Extends `walked` to its first node again.
fn path(
    arrows: &BTreeMap<(String, String), String>,
    walked: &mut Vec<String>,
    seen: &mut BTreeSet<String>,
) -> Option<Vec<String>> {
    let last = walked.last()?.clone();
    for (_, to) in arrows.keys().filter(|(from, _)| *from == last) {
        if *to == walked[0] {
            return Some([&walked[..], std::slice::from_ref(to)].concat());
        }
        if seen.insert(to.clone()) {
            walked.push(to.clone());
            if let Some(found) = path(arrows, walked, seen) {
                return Some(found);
            }
            walked.pop();
        }
    }
    None
}

/// Whether a crate compiles one of its top-level modules for tests only.
fn is_for_tests(root: &str, name: &str) -> bool {
    ["", "pub(crate) "]
        .iter()
        .any(|public| root.contains(&format!("#[cfg(test)]\n{public}mod {name};")))
}

/// Code of a crate by module, without comments and tests.
struct Sources {
    code: BTreeMap<Module, (String, String)>,
    /// Names that a module re-exports, and the module that has them.
    exports: BTreeMap<(Module, String), Module>,
}

impl Sources {
    fn read(folder: &Path) -> Self {
        let mut files = Vec::new();
        list(folder, &mut files);
        let mut sources = Self { code: BTreeMap::new(), exports: BTreeMap::new() };
        let root = fs::read_to_string(folder.join("lib.rs")).unwrap_or_default();
        for file in files {
            let relative = file.strip_prefix(folder).unwrap().with_extension("");
            let mut module = relative
                .components()
                .map(|part| part.as_os_str().to_str().unwrap().to_owned())
                .collect::<Module>();
            if module.last().is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str())) {
                module.pop();
            }
            if module.first().is_some_and(|name| is_for_tests(&root, name)) {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            let code = crate::without_tests(&text);
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            let code = lines.collect::<Vec<_>>().join("\n");
            sources.code.insert(module, (code, relative.display().to_string()));
        }
        for (module, (code, _)) in &sources.code {
            for statement in statements(code).filter(|s| s.starts_with("pub")) {
                let Some((_, tree)) = statement.split_once("use ") else { continue };
                for used in leaves(tree) {
                    let Some((target, Some(name))) = sources.resolve(module, &used) else {
                        continue;
                    };
                    sources.exports.insert((module.clone(), name), target);
                }
            }
        }
        sources
    }

    fn top_level(&self) -> impl Iterator<Item = &String> {
        let names = self.code.keys().filter_map(|module| module.first());
        names.collect::<BTreeSet<_>>().into_iter()
    }

    /// The module that a path names, and the item of it.
    fn resolve(&self, from: &Module, used: &[String]) -> Option<(Module, Option<String>)> {
        let mut rest = used;
        let mut at = match used.first()?.as_str() {
            "crate" => Vec::new(),
            "self" => from.clone(),
            "super" => from[..from.len().checked_sub(1)?].to_vec(),
            first => {
                let child = [&from[..], &[first.to_owned()]].concat();
                if !self.code.contains_key(&child) {
                    return None;
                }
                rest = &used[1..];
                child
            }
        };
        if rest.len() == used.len() {
            rest = &used[1..];
        }
        while let Some(next) = rest.first() {
            let child = [&at[..], std::slice::from_ref(next)].concat();
            if next == "super" {
                at.pop()?;
            } else if self.code.contains_key(&child) {
                at = child;
            } else {
                break;
            }
            rest = &rest[1..];
        }
        Some((at, rest.first().cloned()))
    }

    fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (module, (code, file)) in &self.code {
            let statements = statements(code).collect::<Vec<_>>();
            let used = statements.iter().filter_map(|s| s.split_once("use ")).map(|(_, tree)| tree);
            let used = used.flat_map(leaves).chain(inline_paths(code));
            for used in used {
                let Some((mut target, name)) = self.resolve(module, &used) else { continue };
                if let Some(name) = name
                    && let Some(home) = self.exports.get(&(target.clone(), name))
                {
                    target.clone_from(home);
                }
                let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
                if let (Some(from), Some(to)) = (module.get(common), target.get(common)) {
                    let siblings = arrows.entry(module[..common].to_vec()).or_default();
                    siblings.entry((from.clone(), to.clone())).or_insert_with(|| file.clone());
                }
            }
        }
        arrows
    }
}

/// Rust files below a folder, those of tests left out.
fn list(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if ["tests", "testing"].contains(&stem) {
            continue;
        }
        if path.is_dir() {
            list(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// `use` statements, each on one line and without its semicolon.
fn statements(code: &str) -> impl Iterator<Item = String> + '_ {
    code.split(';').filter_map(|piece| {
        let starts = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "];
        let start = piece
            .lines()
            .position(|line| starts.iter().any(|start| line.trim_start().starts_with(start)))?;
        let lines = piece.lines().skip(start).map(str::trim).collect::<Vec<_>>();
        Some(lines.join(" "))
    })
}

/// Paths of a `use` tree: `a::{b, c::d}` has `a::b` and `a::c::d`.
fn leaves(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim();
    let Some((head, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree);
        let parts = path.split("::").map(|part| part.trim().to_owned());
        return vec![parts.filter(|part| !part.is_empty()).collect()];
    };
    let inner = rest.strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut start, mut items) = (0, 0, Vec::new());
    for (index, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&inner[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    items.push(&inner[start..]);
    let items = items.into_iter().filter(|item| !item.trim().is_empty());
    items.flat_map(|item| leaves(&format!("{head}{}", item.trim()))).collect()
}

/// Paths within expressions and types that begin with `crate::` or `super::`.
fn inline_paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let end = code[at..].find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            let path = &code[at..end.map_or(code.len(), |end| at + end)];
            found.push(path.split("::").filter(|p| !p.is_empty()).map(str::to_owned).collect());
        }
    }
    found
}

#[test]
fn circles_and_arrows_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod a;\nmod b;\nmod c;\n");
    write("a.rs", "use crate::{\n    b::Bee,\n    c,\n};\n");
    write("b.rs", "pub use one::Bee;\nmod one;\nmod two;\n// use crate::a::X;\n");
    write(
        "b/one.rs",
        "use super::two::Deep;\n#[cfg(test)]\nmod tests {\n    use crate::a::Y;\n}\n",
    );
    write("b/two.rs", "fn f() -> super::Bee {}\n");
    write("c.rs", "fn f() { crate::a::g() }\n");
    let arrows = Sources::read(folder.path()).arrows();
    let pairs = |module: &[&str]| {
        let module = module.iter().map(|part| (*part).to_owned()).collect::<Module>();
        arrows[&module].keys().map(|(from, to)| format!("{from}>{to}")).collect::<Vec<_>>()
    };
    assert_eq!(pairs(&[]), ["a>b", "a>c", "c>a"]);
    assert_eq!(pairs(&["b"]), ["one>two", "two>one"]);
    assert_eq!(circle(&arrows[&Vec::new()]).unwrap(), ["a", "c", "a"]);
    assert!(circle(&arrows[&vec!["b".to_owned()]]).is_some());
    let levels = order("text\n- `x`: a, b < c\n", "x").unwrap();
    assert_eq!((levels["a"], levels["b"], levels["c"]), (0, 0, 1));
}
